// Everything about memories with the keyboard alone. What is changed here is taken back.
import { check, equal, eventually, rest, run } from './lib.mjs'

await run(async (browser) => {
  const tab = await browser.tab()
  const { page } = tab
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve())
  const focused = (what) => page.evaluate((selector) => document.activeElement?.matches(selector) ?? false, what)

  // Logging in: the field has the focus.
  await tab.open('/login')
  check(await focused('[name=key]'), 'the key does not have the focus')
  await page.keyboard.type(process.env.REMORA_TOKEN)
  await Promise.all([page.waitForURL((to) => to.pathname === '/'), press('Enter')])

  // The first thing that Tab reaches skips the menu.
  await tab.open('/memories?user=ada')
  await press('Tab')
  check(await focused('.skip'), 'the first stop is not the link past the menu')
  await press('Enter')
  check(await focused('#main'), 'the link past the menu does not lead to the content')

  // Search, choose, next and previous.
  await press('/')
  check(await focused('#q'), '/ does not lead to the search')
  await page.keyboard.type('car service')
  await page.locator('#rows .text').filter({ hasText: 'Volvo' }).first().waitFor()
  await eventually('the search has come', async () => (await page.locator('#rows .text').first().textContent()).includes('Volvo'))
  await press('ArrowDown')
  await page.locator('#detail .memory-text').filter({ hasText: 'Volvo' }).waitFor()
  await press('Escape')
  const first = await page.locator('#detail [data-memory]').getAttribute('data-memory')
  if (await page.locator('#rows .row').count() > 1) {
    await press('j')
    await eventually('another is chosen', async () => await page.locator('#detail [data-memory]').getAttribute('data-memory') !== first)
    await press('k')
    await eventually('the first is chosen again', async () => await page.locator('#detail [data-memory]').getAttribute('data-memory') === first)
  }

  // Edit and undo.
  await press('e')
  check(await focused('textarea[name=text]'), 'e does not lead to the text')
  await press('Control+End')
  await page.keyboard.type(' (diesel)')
  await press('Tab', 'Tab', 'Tab')
  check(await focused('button[value=save]'), 'the third stop after the text does not save')
  await press('Enter')
  await page.locator('#detail .memory-text').filter({ hasText: '(diesel)' }).waitFor()
  await page.locator('#detail').getByRole('button', { name: 'Undo' }).waitFor()
  await press('u')
  await page.locator('#detail .memory-text').filter({ hasNotText: '(diesel)' }).waitFor()

  // Pin and unpin, forget and bring back.
  await press('p')
  await page.locator('#detail').getByRole('button', { name: 'Unpin' }).waitFor()
  await press('p')
  await page.locator('#detail').getByRole('button', { name: 'Pin', exact: true }).waitFor()
  await press('d')
  await page.locator('#detail').getByRole('button', { name: 'Bring it back' }).waitFor()
  await press('u')
  await page.locator('#detail').getByRole('button', { name: 'Forget' }).waitFor()
  check((await rest('GET', `/v1/memories/${encodeURIComponent(first)}?user=ada`)).text.includes('Volvo'), 'it is not as it was')

  // Selecting, and its own page.
  await page.locator('#rows .line[aria-current]').focus()
  await press('x')
  equal(await page.locator('#rows input:checked').count(), 1, 'selected')
  await press('x', 'o')
  await page.waitForURL((to) => to.pathname.startsWith('/memories/'))

  // The keys.
  await press('?')
  await page.locator('#keys').waitFor({ state: 'visible' })
  await tab.axe('the keys')
  await press('Escape')
  await page.locator('#keys').waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).press('Enter')
  await page.locator('#keys').waitFor({ state: 'visible' })
  await press('Escape')

  // The menus.
  await tab.open('/review?user=ada')
  await page.locator('.chooser').focus()
  await press('Enter')
  await page.locator('#whose').waitFor({ state: 'visible' })
  await tab.axe('choosing a person')
  await press('Escape')
  await page.locator('#whose').waitFor({ state: 'hidden' })
})
