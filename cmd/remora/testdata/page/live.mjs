// Exchanges as they come: shown while the page is open, paused, filtered, and none lost or doubled when the stream breaks.
import { check, equal, eventually, rest, run, say } from './lib.mjs'

await run(async (browser) => {
  const tab = await browser.tab()
  const { page, context } = tab
  const rows = page.locator('#exchanges > li:not(.more)')
  const asked = page.locator('#exchanges .asked')
  const texts = async () => (await asked.allTextContents()).map((t) => t.trim())
  const until = async (what, want) => await eventually(what, async () => want(await texts().catch(() => [])))
  const state = async (text) => await eventually(`the state ${text}`, async () => (await page.locator('#live-state').textContent()).includes(text))
  const counted = async (text) => (await texts()).filter((t) => t === text).length
  await tab.login()
  await state('Live')

  // Everybody's are listed, the newest first, and each leads to its receipt.
  const { exchanges } = await rest('GET', '/v1/exchanges/recent?limit=50')
  const ids = await rows.evaluateAll((all) => all.map((li) => li.id))
  equal(ids.slice(0, exchanges.length), exchanges.map((x) => x.id), 'the list')
  const users = await page.locator('#exchanges .from b').allTextContents()
  for (const user of ['ada', 'bob']) check(users.includes(user), `nothing of ${user} is listed`)
  equal(await page.locator('#reload').isVisible(), false, 'a way to reload what is live')
  await tab.sweep('everybody')

  // A request through the proxy appears by itself.
  const said = await say({ conversation: 'live 1', text: 'What is my boat called, if you know?' })
  await until('the first request', (all) => all[0] === 'What is my boat called, if you know?')
  const first = rows.first()
  equal(await first.locator('.is').textContent().then((t) => t.trim()), said.status, 'its status')
  check((await first.locator('.given').innerText()).startsWith(`${said.memories} memor`), 'how many memories it was given')
  check(/% cached/.test(await first.locator('.cached').innerText()), 'the share from the cache')
  check(/ms/.test(await first.locator('.took').innerText()) && /memory .*ms/.test(await first.locator('.added-time').innerText()), 'the times')

  // Paused, nothing moves, and what waits is counted.
  await page.getByRole('button', { name: 'Pause' }).click()
  await state('Paused, 0 waiting')
  await say({ conversation: 'live 2', text: 'Where does the boat lie in winter?' })
  await say({ user: 'bob', conversation: 'live 3', text: 'Which bicycle is mine?' })
  await state('Paused, 2 waiting')
  equal((await texts())[0], 'What is my boat called, if you know?', 'the newest row while it is paused')
  await tab.sweep('paused')
  await page.getByRole('button', { name: 'Resume' }).click()
  await until('what waited', (all) => all[0] === 'Which bicycle is mine?' && all[1] === 'Where does the boat lie in winter?')
  await state('Live')

  // While the stream is broken nothing is lost, and nothing is doubled after it.
  tab.allow(/ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED|live\/events/)
  await context.setOffline(true)
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))) // has it open again, which fails
  await eventually('the stream is broken', async () => !(await page.locator('#live-state').textContent()).startsWith('Live'))
  await say({ conversation: 'live 4', text: 'What did I say while you were away?' })
  await context.setOffline(false)
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  await until('what came meanwhile', (all) => all[0] === 'What did I say while you were away?')
  await say({ conversation: 'live 5', text: 'And what do I say now?' })
  await until('what came then', (all) => all[0] === 'And what do I say now?')
  for (const text of ['What is my boat called, if you know?', 'Which bicycle is mine?', 'What did I say while you were away?', 'And what do I say now?']) equal(await counted(text), 1, `rows of “${text}”`)

  // Filters: as somebody types or chooses, in the address, and for what comes.
  await page.locator('#live-user').pressSequentially('bob')
  await until('the rows of bob', (all) => all[0] === 'Which bicycle is mine?' && !all.some((t) => t.includes('boat')))
  equal([...new URL(page.url()).searchParams], [['user', 'bob']], 'the address')
  await state('Live')
  await say({ conversation: 'live 6', text: 'This is of somebody else.' })
  await say({ user: 'bob', conversation: 'live 7', text: 'When does my team deploy?' })
  await until('what comes of bob', (all) => all[0] === 'When does my team deploy?')
  check(!(await texts()).includes('This is of somebody else.'), 'the stream ignores the user')
  await page.reload()
  check((await texts())[0] === 'When does my team deploy?' && (await page.locator('#exchanges .from b').allTextContents()).every((u) => u === 'bob'), 'the filter did not survive a reload')
  await page.locator('#live-user').fill('')
  await page.getByLabel('Status').selectOption('replayed')
  await until('what was replayed', (all) => all.length > 0 && all.every((t) => t.startsWith('Thank')))
  await page.getByLabel('Status').selectOption('')
  await page.getByLabel('Model').selectOption('claude-sonnet-4-5')
  await page.getByLabel('Client').selectOption({ index: 1 })
  await eventually('a model and a client', async () => new URL(page.url()).searchParams.get('model') === 'claude-sonnet-4-5' && new URL(page.url()).searchParams.has('client'))
  check((await page.locator('#exchanges .from').allTextContents()).every((t) => t.includes('claude-sonnet-4-5')), 'another model is listed')
  await page.locator('#live-user').fill('somebody-unknown')
  await page.locator('#live-empty').waitFor()
  await tab.sweep('none')
  await page.getByRole('link', { name: 'Show everything' }).first().click()
  await until('everything', (all) => all.includes('When does my team deploy?') && all.includes('And what do I say now?'))

  // What looks like markup is text, in the list and in what comes.
  await say({ conversation: 'live 8', text: 'Is <img src=x onerror=alert(1)>\nevent: other\n\n</li> a tag?', model: 'gpt-<img src=x onerror=alert(2)>' })
  await until('markup', (all) => all[0].startsWith('Is <img src=x onerror=alert(1)>'))
  check((await page.locator('#exchanges .from').first().textContent()).includes('gpt-<img src=x onerror=alert(2)>'), 'the model is not shown as text')
  equal(await page.locator('#live-list').locator('img, script, iframe').count(), 0, 'elements made of texts')
  await tab.sweep('markup')

  // Coming from the memories of somebody, it is about them, and says so.
  await tab.open('/memories?user=bob')
  await page.locator('nav').getByRole('link', { name: 'Live' }).click()
  await until('the rows of bob', (all) => all[0] === 'When does my team deploy?')
  equal(await page.locator('#live-user').inputValue(), 'bob', 'the user in the form')

  // A row leads to its receipt.
  await rows.first().locator('a').click()
  await page.locator('#request').waitFor()
  check((await page.locator('#request').innerText()).includes('When does my team deploy?'), 'the wrong receipt')

  // Without JavaScript there is the list, and earlier ones by a link.
  const plain = await browser.tab({ javaScriptEnabled: false })
  await plain.login()
  check((await plain.page.locator('#exchanges .asked').first().textContent()).startsWith('Is <img'), 'the list without JavaScript')
  check(await plain.page.locator('#reload').isVisible() && !await plain.page.locator('#pause').isVisible(), 'the buttons without JavaScript')
  for (let i = 0; i < 60; i++) await say({ user: 'bob', conversation: `many ${i}`, text: `Question number ${i} of many`, memory: 'observe' })
  await eventually('the last of many', async () => (await rest('GET', '/v1/exchanges/recent?limit=1')).exchanges[0].query.includes('number 59'))
  await plain.page.locator('#reload').click()
  await plain.page.getByRole('link', { name: 'Earlier exchanges' }).click()
  await plain.page.getByText('Question number 9 of many').waitFor()
  equal(await plain.page.getByText('Question number 10 of many').count(), 0, 'a row that the first page has')

  // With it, they are put below the others.
  await tab.open('/')
  await page.getByRole('link', { name: 'Earlier exchanges' }).click()
  await until('earlier ones', (all) => all[0].includes('number 59') && all.includes('Question number 9 of many'))
  equal(new Set(await rows.evaluateAll((all) => all.map((li) => li.id))).size, await rows.count(), 'rows without doubles')
})
