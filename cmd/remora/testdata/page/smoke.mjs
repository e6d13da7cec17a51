// The seeds are there, and the checks of the library find what they are to find.
import { check, equal, eventually, phone, rest, run, say, token, url } from './lib.mjs'

// refused returns the message of the error that work must throw.
async function refused(what, work) {
  try {
    await work()
  } catch (err) {
    return err.message
  }
  throw new Error(`${what} was not noticed`)
}

await run(async (browser) => {
  for (const [user, min] of [['ada', 8], ['bob', 3]]) {
    const { exchanges } = await rest('GET', `/v1/exchanges?user=${user}&limit=500`)
    check(exchanges.length >= min, `${user} has ${exchanges.length} exchanges`)
  }
  const { exchanges } = await rest('GET', '/v1/exchanges?user=ada&limit=500')
  for (const field of ['model', 'client', 'status']) check(new Set(exchanges.map((x) => x[field])).size >= 2, `all exchanges have the same ${field}`)
  check(exchanges.some((x) => x.usage.cacheRead > 0), 'no exchange read from the cache')
  for (const state of ['current', 'superseded', 'quarantined']) {
    const { memories } = await rest('GET', `/v1/memories?user=ada&state=${state}&limit=500`)
    check(memories.length > 0, `no memory is ${state}`)
  }

  const tab = await browser.tab({ extraHTTPHeaders: { Authorization: `Bearer ${token}` } })
  equal((await tab.open('/reference')).status(), 200, 'status of the reference')
  await tab.axe('the reference') // which is long, and looks the same everywhere

  await (await browser.tab()).login()
  await (await browser.tab()).login({ link: true })

  // A tab with faults of each kind.
  const faulty = await browser.tab()
  const policy = "default-src 'none'; script-src 'self'; require-trusted-types-for 'script'"
  await faulty.page.route(`${url}/faulty`, (route) => route.fulfill({
    contentType: 'text/html',
    headers: { 'Content-Security-Policy': policy },
    body: `<!doctype html><title>x</title><body onload="alert(1)"><pre>${'x'.repeat(999)}</pre><img src="/nothing-here">`,
  }))
  await faulty.open('/faulty')
  await faulty.page.setViewportSize(phone)
  check((await refused('a wide page', () => faulty.fits())).includes('scrolls sideways'), 'the wrong error of a wide page')
  check((await refused('an inaccessible page', () => faulty.axe())).includes('html-has-lang'), 'the wrong error of an inaccessible page')
  await eventually('violations', async () => faulty.problems.some((p) => p.includes('content security policy: script-src')))
  await faulty.page.route(`${url}/faultier`, (route) => route.fulfill({
    contentType: 'text/html',
    body: `<!doctype html><title>x</title><script>alert(1); fetch('/nothing-there').then(() => { throw new Error('deliberate') })</script>`,
  }))
  await faulty.open('/faultier')
  for (const part of ['a dialog opened: alert 1', 'deliberate', '/nothing-there: status 4']) {
    await eventually(part, async () => faulty.problems.some((p) => p.includes(part)))
  }
  check((await refused('a tab with problems', () => browser.fail())).includes('deliberate'), 'the wrong error of a tab with problems')
  faulty.problems.length = 0

  const answer = await say({ user: 'ada', conversation: 'smoke', text: 'What is my boat called?', memory: 'observe' })
  equal(answer.status, 'observed', 'status of a question')
})
