// What memory did in many exchanges: figures, charts with their numbers, filters, and the comparison.
import { check, equal, eventually, rest, run } from './lib.mjs'

await run(async (browser) => {
  const tab = await browser.tab()
  const { page } = tab
  const param = (name) => new URL(page.url()).searchParams.get(name)
  const note = page.locator('#benefit .note')
  const figure = (label) => page.locator('.figure').filter({ hasText: label }).locator('.value')
  const percent = (v) => v > 0 && v < 0.01 ? '< 1 %' : `${Math.round(v * 100)} %`
  await tab.login()

  // Everybody, whoever the other views are about.
  await tab.open('/benefit?user=ada')
  const all = await rest('GET', '/v1/benefit')
  const counted = (n) => note.filter({ hasText: new RegExp(`^${n} requests?\\b`) })
  await counted(all.totals.exchanges).waitFor()
  equal(await figure('Hit rate').textContent(), percent(all.totals.hitRate), 'hit rate')
  equal(await figure('Empty').textContent(), percent(all.totals.emptyRate), 'empty')
  equal(await figure('Timeouts').textContent(), percent(all.totals.failRate), 'failures')
  equal(await figure('Cached share').textContent(), percent(all.totals.cacheReadShare), 'cached share')
  check((await figure('Paid').textContent()).endsWith('USD'), 'no price')
  for (const f of await page.locator('.figure').all()) check((await f.locator('.meaning').textContent()).length > 10, 'a figure has no meaning')

  // Each chart is drawn, and its numbers are below it.
  await eventually('charts', async () => await page.locator('.chart canvas').count() === 3)
  const requests = page.locator('figure').filter({ hasText: 'What memory did for them' })
  await requests.getByText('The numbers').click()
  const numbers = (await requests.locator('tbody td').allTextContents()).map((t) => Number(t.replace(/\D/g, '')))
  equal(numbers.reduce((a, b) => a + b, 0), all.totals.exchanges, 'the sum of the table')
  const drawn = await page.locator('.chart canvas').first().evaluate((c) => {
    const pixels = c.getContext('2d').getImageData(0, 0, c.width, c.height).data
    const colours = new Set()
    for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] === 255) colours.add(`${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`)
    return colours.size
  })
  check(drawn > 3, `the chart has ${drawn} colours`)
  await tab.sweep('everybody')

  // One person only, and the address says so.
  await page.getByLabel('People').selectOption({ label: 'only ada' })
  const ada = await rest('GET', '/v1/benefit?user=ada')
  check(ada.totals.exchanges < all.totals.exchanges, 'all requests are those of ada')
  await counted(ada.totals.exchanges).waitFor()
  await eventually('the address', async () => (param('only') ?? '').includes('user=ada'))
  await eventually('charts again', async () => await page.locator('.chart canvas').count() === 3)
  await page.reload()
  await counted(ada.totals.exchanges).waitFor()

  // Period, model and client.
  await page.getByLabel('People').selectOption({ label: 'everybody' })
  await page.getByLabel('Period').selectOption('24h')
  await eventually('the period in the address', async () => param('period') === '24h')
  await page.locator('figure').filter({ hasText: 'By the hour' }).first().waitFor()
  await page.getByLabel('Model').fill('gpt-5.1')
  await page.getByLabel('Model').press('Enter')
  const gpt = await rest('GET', '/v1/benefit?model=gpt-5.1')
  await counted(gpt.totals.exchanges).waitFor()
  await tab.sweep('filtered')
  await page.getByLabel('Model').fill('<img src=x onerror=alert(1)>')
  await page.getByLabel('Client').fill('"><script>alert(2)</script>')
  await page.getByLabel('Client').press('Enter')
  await page.getByText('No request matches in this period').waitFor()
  equal(await page.locator('main img, main script').count(), 0, 'elements that were typed')
  await tab.sweep('nothing')
  await page.getByRole('link', { name: 'Count all requests' }).click()
  await counted(all.totals.exchanges).waitFor()

  // Observed beside those with memory.
  const comparison = page.locator('section').filter({ hasText: 'With memory, and without' })
  equal((await comparison.locator('thead th').allTextContents()).slice(1, 3), ['On', 'Observe'], 'what is compared')
  equal((await comparison.getByRole('row', { name: 'Requests' }).locator('td').allTextContents()).slice(0, 2), [String(all.on.exchanges), String(all.observe.exchanges)], 'requests that are compared')
  check((await comparison.textContent()).includes('different requests'), 'the limits of the comparison are not said')

  // The library of charts is loaded here only.
  check(await page.evaluate(() => typeof globalThis.uPlot) === 'function', 'no charts')
  await tab.open('/memories?user=ada')
  check(await page.evaluate(() => typeof globalThis.uPlot) === 'undefined', 'charts are loaded where there are none')

  // Without a script the numbers are there.
  const plain = await browser.tab({ javaScriptEnabled: false })
  await plain.login()
  await plain.open('/benefit')
  check(await plain.page.locator('figure table').first().isVisible(), 'no numbers without a script')
  check(!await plain.page.locator('.chart').first().isVisible(), 'an empty chart without a script')
  await plain.shoot('without-script')
})
