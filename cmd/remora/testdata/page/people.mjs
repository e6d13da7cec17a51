// An administrator finds people, exports one and erases one, with a receipt to print.
import { readFileSync } from 'node:fs'
import { check, equal, eventually, mallory, rest, run, token } from './lib.mjs'

await run(async (browser) => {
  const tab = await browser.tab()
  const { page } = tab
  await tab.login()

  await tab.open('/people')
  const names = () => page.locator('tbody th').allTextContents()
  const all = await names()
  for (const name of ['ada', 'bob']) check(all.includes(name), `${name} is not listed: ${all}`)
  check(all.some((name) => name.includes('<img')), 'a name with markup is not shown as it is')
  equal(await page.locator('tbody img').count(), 0, 'images from a name')
  await page.locator('.formats summary').first().click()
  await tab.sweep('people')

  // As somebody types.
  await page.locator('#q').fill('BO')
  await eventually('only bob is listed', async () => JSON.stringify(await names()) === '["bob"]')
  check(page.url().includes('q=BO'), 'the filter is not in the address')
  await page.locator('#q').fill('nobody of this name')
  await page.locator('.nothing').waitFor()
  await tab.open('/people?q=bo')
  equal(await names(), ['bob'], 'people of a filter in the address')

  // Exports.
  for (const [label, name, part] of [['Remora (can', /^remora-bob-\d{4}-\d\d-\d\d\.jsonl$/, '"kind":'], ['mem0', /\.json$/, '{"results":['], ['Markdown', /\.md$/, '# What is remembered']]) {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      (async () => {
        if (!await page.locator('.formats[open]').count()) await page.locator('.formats summary').click()
        await page.locator('.formats a', { hasText: label }).click()
      })(),
    ])
    check(name.test(file.suggestedFilename()), `a file named ${file.suggestedFilename()}`)
    const text = readFileSync(await file.path(), 'utf8')
    check(text.includes(part) && text.includes('Peugeot'), `the export ${label} is not whole: ${text.slice(0, 200)}`)
    check(!text.includes('Marbella'), 'the export has memories of others')
  }

  // Erasing bob.
  await page.locator('a.erase').click()
  check((await page.locator('main').innerText()).includes('can’t be undone'), 'no warning')
  const listed = await rest('GET', '/v1/users?limit=500')
  const memories = listed.users.filter((u) => u.user === 'bob').reduce((n, u) => n + u.memories, 0)
  check((await page.locator('main').innerText()).includes(`${memories} memories`), 'the number of memories is not said')
  await tab.sweep('erase')
  tab.allow(/422/)
  await page.locator('[name=name]').fill('bobby')
  await page.locator('button', { hasText: 'Erase for good' }).click()
  await page.locator('.problem').waitFor()
  check((await rest('GET', '/v1/users?limit=500')).users.some((u) => u.user === 'bob'), 'bob is gone though the name was wrong')
  await page.locator('[name=name]').fill('bob')
  await page.locator('button', { hasText: 'Erase for good' }).click()
  await page.waitForURL(/receipt=erasure-/)
  check(!(await rest('GET', '/v1/users?limit=500')).users.some((u) => u.user === 'bob'), 'bob is still there')
  const receipt = page.url()
  const id = new URL(receipt).searchParams.get('receipt')
  for (const part of [id, 'bob', `${memories}`, 'data keys are destroyed']) check((await page.locator('.paper').innerText()).includes(part), `the receipt does not say ${part}`)
  equal(await page.locator('nav').count(), 0, 'menus on the receipt')
  await tab.sweep('receipt')
  await page.reload()
  check((await page.locator('.paper').innerText()).includes(id), 'the receipt is gone after a reload')
  await page.emulateMedia({ media: 'print' })
  equal(await page.locator('button:visible').count(), 0, 'buttons on paper')
  await tab.shoot('print')
  await page.emulateMedia({ media: 'screen' })

  // Somebody whose name is markup.
  await tab.open('/people?q=mallory')
  await page.locator('a.erase').first().click()
  const shown = await page.locator('strong.typed').textContent()
  check(shown.includes('<img'), `the name is shown as ${shown}`)
  await tab.sweep('erase-markup')
  await page.locator('[name=name]').fill(shown)
  await page.locator('button', { hasText: 'Erase for good' }).click()
  await page.waitForURL(/receipt=erasure-/)
  check(!(await rest('GET', '/v1/users?limit=500')).users.some((u) => u.user === mallory), 'mallory is still there')

  // Another session has no receipts of this one.
  const other = await browser.tab()
  await other.login()
  other.allow(/404/)
  equal((await other.open(new URL(receipt).pathname + new URL(receipt).search)).status(), 404, 'status of a receipt of another session')

  // A session that is limited to one user.
  const limited = await browser.tab({ extraHTTPHeaders: { Authorization: `Bearer ${token}`, 'X-Remora-User': 'ada' } })
  await limited.open('/people')
  equal([...new Set(await limited.page.locator('tbody th').allTextContents())], ['ada'], 'people of a session for ada')
})
