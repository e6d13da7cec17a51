// How Remora does, and the settings in force.
import { check, equal, eventually, rest, run, say, token } from './lib.mjs'

await run(async (browser) => {
  const tab = await browser.tab()
  const { page } = tab
  const param = (name) => new URL(page.url()).searchParams.get(name)
  const keys = () => page.locator('#found th summary').allTextContents()
  await tab.login()
  await tab.open('/health?user=ada')

  // The verdict and the numbers.
  await page.locator('.verdict-text').filter({ hasText: /^(Everything works|Memory works)/ }).waitFor()
  const metrics = await rest('GET', '/v1/metrics')
  const figure = (label) => page.locator('#numbers .figure').filter({ has: page.getByText(label, { exact: true }) }).locator('.value')
  equal(await figure('Store').textContent(), 'open', 'the store')
  const number = async (locator) => Number((await locator.textContent()).replace(/\D/g, ''))
  const sum = Object.values(metrics.system.requests).reduce((a, b) => a + b, 0)
  check(await number(figure('Requests')) >= sum - 1, 'requests are missing')
  for (const status of ['injected', 'replayed', 'empty']) check(await number(page.locator('.tally tr').filter({ hasText: status }).locator('.number')) > 0, `no request is ${status}`)
  await tab.sweep('admin')

  // The numbers are read again by themselves, while somebody looks, and nothing else is.
  await page.locator('#setting').fill('dead')
  const before = await number(figure('Requests'))
  await say({ user: 'ada', conversation: 'health', text: 'Good morning!' })
  await eventually('one more request', async () => await number(figure('Requests')) > before)
  equal(await page.locator('#setting').inputValue(), 'dead', 'what is typed')
  const stopped = await page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true })
    const event = new CustomEvent('htmx:before:request', { bubbles: true, cancelable: true, detail: { ctx: { sourceElement: document.querySelector('#numbers') } } })
    document.querySelector('#numbers').dispatchEvent(event)
    delete document.hidden
    return event.defaultPrevented
  })
  check(stopped, 'a tab that nobody sees reads the numbers')

  // Settings: search, only those that were changed, and what they mean.
  await tab.open('/health?user=ada')
  const all = (await keys()).length
  check(all > 100, `${all} settings`)
  check(!await page.locator('#found th summary').first().isVisible(), 'all sections are open')
  await page.locator('#found .group > summary').first().click()
  await page.locator('#found th summary').first().waitFor({ state: 'visible' })
  await page.locator('#setting').pressSequentially('recall.dead', { delay: 5 })
  await eventually('the setting, and those that name it', async () => { const found = await keys(); return found[0] === 'recall.deadline' && found.length < 5 })
  equal(param('q'), 'recall.dead', 'the search in the address')
  await page.locator('#found th summary').first().click()
  check((await page.locator('#found .doc').first().textContent()).length > 20, 'it is not said what it means')
  check(await page.locator('#found .doc').first().isVisible(), 'what it means is not shown')
  await page.locator('#setting').fill('')
  await page.getByLabel('only changed').check()
  await eventually('fewer settings', async () => { const n = (await keys()).length; return n > 3 && n < all })
  check((await keys()).includes('api.listen'), 'a changed setting is missing')
  check(/config\.json:\d+/.test(await page.locator('#found tr').filter({ hasText: 'api.listen' }).textContent()), 'where it comes from is not said')
  await tab.sweep('changed')
  await page.reload()
  check(await page.getByLabel('only changed').isChecked(), 'the filter is lost')
  await page.locator('#setting').fill('<script>alert(1)</script>')
  await page.getByText('No changed setting matches').waitFor()

  // Secrets are nowhere.
  await tab.open('/health?q=api.token')
  equal(await page.locator('#found td.value').first().evaluate((e) => e.firstChild.textContent), 'set', 'the token')
  for (const path of ['/health', '/health?q=token', '/health?changed=1']) {
    await tab.open(path)
    check(!(await page.content()).includes(token), `the token is at ${path}`)
  }

  // Without a script: the same, by a button.
  const plain = await browser.tab({ javaScriptEnabled: false })
  await plain.login()
  await plain.open('/health')
  await plain.page.locator('#setting').fill('recall.dead')
  await plain.page.getByRole('button', { name: 'Show', exact: true }).click()
  equal(await plain.page.locator('#found th summary').first().textContent(), 'recall.deadline', 'what is found without a script')
})
