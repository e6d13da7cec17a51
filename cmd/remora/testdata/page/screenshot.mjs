// Makes the picture of the documentation.
import { desktop, run } from './lib.mjs'

await run(async (browser) => {
  const tab = await browser.tab({ viewport: desktop, colorScheme: 'light' })
  await tab.login()
  await tab.open('/memories?user=ada&kind=fact')
  await tab.page.screenshot({ path: process.env.REMORA_PAGE_PICTURE, animations: 'disabled' })
})
