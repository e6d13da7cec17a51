// Makes the picture of the documentation: a search, and what it found first.
import { desktop, eventually, run } from './lib.mjs'

await run(async (browser) => {
  const tab = await browser.tab({ viewport: desktop, colorScheme: 'light' })
  const { page } = tab
  await tab.login()
  await tab.open('/memories?user=ada')
  await page.locator('#q').fill('where does my boat lie?')
  await eventually('the search', async () => new URL(page.url()).searchParams.get('q') !== null && (await page.locator('#rows .text').first().textContent()).includes('Marbella'))
  await page.locator('#rows .line').first().click()
  await page.locator('#detail .memory-text').waitFor()
  await page.screenshot({ path: process.env.REMORA_PAGE_PICTURE, animations: 'disabled' })
})
