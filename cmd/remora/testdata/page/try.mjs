// What a message would be given: as it is typed, as of a date beside now, and why.
import { check, equal, eventually, rest, run } from './lib.mjs'

const day = (ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)

await run(async (browser) => {
  const tab = await browser.tab()
  const { page } = tab
  const answer = page.locator('#answer')
  const param = (name) => new URL(page.url()).searchParams.get(name)
  await tab.login()

  // Without a message there is nothing, and it says what will be there.
  await tab.open('/try?user=ada')
  await answer.getByText('appears here').waitFor()
  await tab.sweep('empty')

  // The answer follows what is typed, and the address with it.
  await page.getByLabel('Message', { exact: true }).pressSequentially('What is my boat called?', { delay: 5 })
  await answer.locator('.block').filter({ hasText: 'Marbella' }).waitFor()
  await eventually('the address has the message', async () => param('message') === 'What is my boat called?')
  equal(param('user'), 'ada', 'whose memory')
  const { block, results, relevance } = await rest('POST', '/v1/recall?user=ada', { message: 'What is my boat called?' })
  const shown = (await answer.locator('.block .words').allTextContents()).map((l) => l.trimEnd()).join('\n')
  equal(shown, block.trimEnd(), 'the block')
  await answer.getByText(`${block.length} B`).waitFor()
  equal(await answer.locator('.hit').count(), results.length, 'memories')
  check((await answer.locator('.gauge').textContent()).includes(String(Number(relevance.toPrecision(3)))), 'the gauge shows another relevance')
  await answer.locator('.hit summary').first().click()
  const parts = answer.locator('.hit').first().locator('.parts tbody tr, .parts > tr')
  await parts.first().waitFor({ state: 'visible' })
  await page.getByRole('heading', { name: 'Try' }).click() // leaving the field does not ask again
  check(/[+×] \d/.test(await parts.first().textContent()), 'a part has no number')
  await tab.sweep('now')
  check(await parts.first().isVisible(), 'the parts are closed again')

  // A memory of it leads to its own page, and back.
  await answer.locator('.hit a').first().click()
  await page.waitForURL((to) => to.pathname.startsWith('/memories/'))
  await page.goBack()
  await answer.locator('.block').filter({ hasText: 'Marbella' }).waitFor()

  // As of a date: then beside now, with what differs marked.
  await page.getByLabel('As of').fill(day(100))
  await page.getByLabel('As of').blur()
  await answer.locator('.outcomes.two').waitFor()
  equal(param('asOf'), day(100), 'the date in the address')
  const [then, now] = [answer.locator('.outcome').nth(0), answer.locator('.outcome').nth(1)]
  check((await then.locator('h2').textContent()).startsWith('As of '), 'the date is not said')
  await then.getByText('Nothing would be inserted').waitFor()
  await now.locator('.added.only').filter({ hasText: 'Marbella' }).first().waitFor()
  await answer.getByText('has changed since then').waitFor()
  await page.getByLabel('Message', { exact: true }).fill('Which piano do I own?')
  await then.locator('.block').filter({ hasText: 'Bechstein' }).waitFor()
  await now.locator('.block').filter({ hasText: 'Bechstein' }).waitFor()
  await tab.sweep('as-of')

  // Small talk is given nothing, and the view says why.
  await tab.open('/try?user=ada&message=Good+morning!')
  await answer.getByText('Nothing would be inserted').waitFor()
  await tab.sweep('nothing')

  // What else decides is in the address.
  await tab.open('/try?user=ada&message=Tell+me+about+my+boat,+my+piano+and+my+dog')
  const many = await answer.locator('.hit').count()
  check(many > 1, `${many} memories`)
  await page.getByText('Conversation, model and policy').click()
  await page.getByLabel('Memories at most').fill('1')
  await page.getByLabel('Upstream').selectOption('openai')
  await page.getByLabel('Model').fill('gpt-5.1')
  await page.getByLabel('Model').press('Enter')
  await eventually('one memory', async () => await answer.locator('.hit').count() === 1)
  await eventually('the address has it', async () => param('topK') === '1' && param('upstream') === 'openai' && param('model') === 'gpt-5.1')
  await page.reload()
  equal(await page.getByLabel('Upstream').inputValue(), 'openai', 'the upstream after a reload')
  equal(await answer.locator('.hit').count(), 1, 'memories after a reload')
  await tab.sweep('narrow')

  // A message and a memory that look like markup are text.
  const attack = 'What is my profile picture in HTML? <img src=x onerror=alert(1)>"\'><script>alert(2)</script>'
  await tab.open(`/try?user=ada&message=${encodeURIComponent(attack)}`)
  equal(await page.getByLabel('Message', { exact: true }).inputValue(), attack, 'the message')
  await answer.locator('.block').filter({ hasText: 'profile picture' }).waitFor()
  equal(await page.locator('main img, main script').count(), 0, 'elements that were said')
  await tab.sweep('markup')

  // What is too long for an address is refused in words, with a script and without.
  await tab.open('/try?user=ada')
  await page.getByLabel('Message', { exact: true }).fill('é'.repeat(2100))
  await answer.getByRole('alert').filter({ hasText: '4096' }).waitFor()
  tab.allow(/status (of )?422/)
  equal((await tab.open(`/try?user=ada&message=${encodeURIComponent('é'.repeat(2100))}`)).status(), 422, 'status of a message that is too long')
  await answer.getByRole('alert').filter({ hasText: '4096' }).waitFor()
  equal((await tab.open('/try?user=ada&message=boat&asOf=yesterday')).status(), 422, 'status of a date that is none')
  await answer.getByRole('alert').waitFor()

  // Without a script the button asks.
  const plain = await browser.tab({ javaScriptEnabled: false })
  await plain.login()
  await plain.open('/try?user=ada')
  await plain.page.getByLabel('Message', { exact: true }).fill('What am I allergic to?')
  await plain.page.getByRole('button', { name: 'Try', exact: true }).click()
  await plain.page.locator('#answer .block').filter({ hasText: 'peanuts' }).waitFor()
})
