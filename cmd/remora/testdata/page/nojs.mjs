// Reading, editing and deleting without JavaScript.
import { check, equal, phone, rest, run } from './lib.mjs'

await run(async (browser) => {
  for (const viewport of [undefined, phone]) {
    const tab = await browser.tab({ javaScriptEnabled: false, ...(viewport ? { viewport } : {}) })
    const { page } = tab
    const n = viewport ? 'narrow' : 'wide'
    const texts = () => page.locator('#rows .row .text').allTextContents()
    await tab.login()

    // Every view shows something.
    for (const path of ['/', '/memories', '/review', '/try', '/people', '/benefit', '/import', '/health']) {
      const response = await tab.open(path + '?user=ada')
      equal(response.status(), 200, path)
      check(await page.locator('h1').count() === 1, `${path}: not one heading`)
      await tab.shoot(`${n}-${path.slice(1) || 'live'}`)
    }

    // Search and filters by a button, and further pages by a link.
    await tab.open('/memories?user=ada')
    const all = await texts()
    await page.getByRole('link', { name: 'More', exact: true }).click()
    const more = await texts()
    check(more.length > 0 && more[0] !== all[0], 'the second page is the first')
    await tab.open('/memories?user=ada')
    await page.locator('#q').fill('what is my boat called')
    await page.getByRole('button', { name: 'Search' }).click()
    check((await texts())[0].includes('Marbella'), 'the search found something else')

    // Edit, forget, bring back.
    await page.locator('#rows .line').first().click()
    await page.locator('#detail summary').filter({ hasText: 'Edit' }).click()
    const before = await page.getByLabel('Text').inputValue()
    await page.getByLabel('Text').fill(before + ' Edited.')
    await page.locator('#detail').getByRole('button', { name: 'Save' }).click()
    await page.locator('.memory-text').filter({ hasText: 'Edited.' }).waitFor()
    await page.locator('#detail').getByRole('button', { name: 'Forget' }).click()
    await page.locator('#detail').getByRole('button', { name: 'Bring it back' }).click()
    await page.locator('#detail').getByRole('button', { name: 'Redo' }).waitFor()
    await page.getByRole('button', { name: 'Restore what it was before' }).last().click()
    await page.locator('.memory-text').filter({ hasNotText: 'Edited.' }).waitFor()
    equal(await page.locator('.memory-text').textContent(), before, 'the text in the end')

    // Several at a time.
    await tab.open('/memories?user=ada&kind=fact&source=import')
    await page.locator('#rows input').first().check()
    const chosen = await page.locator('#rows .text').first().textContent()
    await page.locator('#bulk').getByRole('button', { name: 'Forget' }).click()
    check(!(await texts()).includes(chosen), 'it is still listed')
    await page.locator('.toast').getByRole('button', { name: 'Undo' }).click()
    check((await texts()).includes(chosen), 'it is not back')

    // A theme is chosen and kept.
    if (!viewport) {
      await page.getByRole('button', { name: 'dark' }).click()
      equal(await page.locator('html').getAttribute('data-theme'), 'dark', 'the theme')
    }
  }
  equal((await rest('GET', '/v1/memories?user=ada&state=deleted')).memories.length, 0, 'memories that stayed deleted')
})
