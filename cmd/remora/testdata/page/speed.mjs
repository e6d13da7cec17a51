// A user with very many memories: what the first view transfers, and that scrolling and searching come in pages. Times
// are printed; docs/benchmarks.md has them.
import { check, eventually, many, run } from './lib.mjs'

const maxBytes = 150 * 1024
const round = (ms) => Math.round(ms * 10) / 10

await run(async (browser) => {
  const tab = await browser.tab()
  const { page, context } = tab
  await tab.login()
  const network = await context.newCDPSession(page)
  await network.send('Network.enable')
  let bytes = 0
  network.on('Network.loadingFinished', (e) => { bytes += e.encodedDataLength })
  for (const path of ['/', '/memories?user=crowd']) {
    for (const cached of [false, true]) {
      await network.send('Network.setCacheDisabled', { cacheDisabled: !cached })
      bytes = 0
      await tab.open(path)
      const times = await page.evaluate(() => {
        const n = performance.getEntriesByType('navigation')[0]
        return { answered: n.responseEnd, interactive: n.domContentLoadedEventEnd, painted: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0 }
      })
      console.log(`${path} ${cached ? 'again' : 'first'}: ${Math.round(bytes / 1024)} KiB, answered ${round(times.answered)} ms, interactive ${round(times.interactive)} ms, painted ${round(times.painted)} ms`)
      check(bytes > 0 && bytes <= maxBytes, `${path} transfers ${bytes} bytes`)
    }
  }

  // Scrolling: page after page, and the document stays responsive.
  await tab.open('/memories?user=crowd')
  await page.evaluate(() => {
    globalThis.stalls = []
    new PerformanceObserver((list) => globalThis.stalls.push(...list.getEntries().map((e) => e.duration))).observe({ type: 'longtask', buffered: true })
  })
  const rows = page.locator('#rows .row')
  let seen = await rows.count()
  const first = seen
  check(first < 200, `the first page has ${first} rows`)
  const began = Date.now()
  while (seen < 3000) {
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
    await eventually('more rows', async () => await rows.count() > seen)
    seen = await rows.count()
  }
  console.log(`scrolled through ${seen} of ${many} memories in ${Date.now() - began} ms`)
  const ids = await page.locator('#rows .line').evaluateAll((lines) => lines.map((l) => l.dataset.id))
  check(new Set(ids).size === ids.length, 'a memory is listed twice')

  // Searching, a letter at a time.
  await page.evaluate(() => scrollTo(0, 0))
  for (const query of ['ladder attic shelf 7', 'globe in the cellar']) {
    await page.locator('#q').fill('')
    const start = Date.now()
    await page.locator('#q').pressSequentially(query)
    const [word] = query.split(' ')
    await eventually('the search has come', async () => await page.locator('#rows .text').first().textContent().then((t) => t.includes(word), () => false) && new URL(page.url()).searchParams.get('q') === query)
    console.log(`“${query}”, typed and found in ${Date.now() - start} ms`)
  }
  const stalls = await page.evaluate(() => globalThis.stalls)
  console.log(`tasks of more than 50 ms: ${stalls.length}, the longest ${round(Math.max(0, ...stalls))} ms`)
})
