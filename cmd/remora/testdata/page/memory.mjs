// One memory on its own page: its history as differences, what it replaced, where it comes from, where it was used, and
// what was redacted.
import { check, equal, eventually, rest, run } from './lib.mjs'

await run(async (browser) => {
  const tab = await browser.tab()
  const { page } = tab
  const find = async (words, query = '') => (await rest('GET', `/v1/memories?user=ada&limit=500&kind=fact&q=${encodeURIComponent(words)}${query}`)).memories[0]
  const own = (m) => `/memories/${encodeURIComponent(m.id)}?user=ada`
  await tab.login({ link: true })

  // History as differences.
  const seats = await find('window seats')
  await rest('PATCH', `/v1/memories/${seats.id}?user=ada`, { text: 'I prefer aisle seats on long flights', tags: ['travel'], why: 'changed my mind' })
  await tab.open(own(seats))
  await page.locator('.history del').filter({ hasText: /window|w/ }).first().waitFor()
  equal(await page.locator('.history .diff').first().evaluate((e) => [...e.childNodes].filter((n) => n.nodeName !== 'DEL').map((n) => n.textContent).join('')), 'I prefer aisle seats on long flights', 'the text after the change')
  check((await page.locator('.history').textContent()).includes('changed my mind'), 'the reason is not shown')
  await page.locator('.history').getByText('travel').waitFor()
  await tab.sweep('history')

  // Somebody else has changed it since the form was made: nothing is lost.
  await page.locator('#detail summary').filter({ hasText: 'Edit' }).click()
  await rest('PATCH', `/v1/memories/${seats.id}?user=ada`, { text: 'I prefer any seat' })
  await page.getByLabel('Text').fill('I prefer the exit row')
  await page.locator('#detail').getByRole('button', { name: 'Save' }).click()
  await page.locator('[role=alert]').filter({ hasText: 'Somebody else' }).waitFor()
  equal(await page.getByLabel('Text').inputValue(), 'I prefer the exit row', 'what was typed')
  await page.locator('#detail').getByRole('button', { name: 'Save' }).click()
  await page.locator('.memory-text').filter({ hasText: 'exit row' }).waitFor()

  // What it replaced, and back.
  const colour = await find('favourite colour is blue')
  await tab.open(own(colour))
  await page.locator('.chain').getByText('green').click()
  await page.locator('#detail .chip').filter({ hasText: 'superseded' }).waitFor()
  await page.getByText('a later statement').click()
  await page.locator('.memory-text').filter({ hasText: 'blue' }).waitFor()

  // Where it comes from, and where it was used.
  const question = 'What is my boat called, and where does it lie?'
  const asked = (await rest('GET', '/v1/exchanges?user=ada&status=injected&limit=100')).exchanges.find((x) => x.query === question)
  await tab.open(`/memories/${encodeURIComponent(asked.inserted[0].spans[0].id)}?user=ada`)
  await page.locator('.talk .said.user').filter({ hasText: 'my boat is called Marbella' }).waitFor()
  await tab.sweep('origin')
  const uses = page.locator('section', { has: page.getByRole('heading', { name: 'Where it was used' }) })
  await uses.getByText(question).click()
  await page.waitForURL((to) => to.pathname === `/exchanges/${asked.id}`)

  // Originals, behind a click.
  const mail = (await rest('GET', '/v1/memories?user=ada&limit=500&q=e-mail')).memories.find((m) => m.redacted > 0)
  check(!mail.text.includes('ada.king'), 'the address was not redacted')
  await tab.open(own(mail))
  check(!(await page.content()).includes('ada.king@example.org'), 'the original is shown before it is asked for')
  await page.getByRole('link', { name: 'Show them' }).click()
  await page.locator('#originals').getByText('ada.king@example.org').waitFor()
  await tab.sweep('originals')

  // A text that looks like markup.
  const note = await find('My sixth note')
  await tab.open(own(note))
  check((await page.locator('.memory-text').textContent()).includes('<iframe srcdoc='), 'the markup is not shown as text')
  check((await page.getByLabel('Text').inputValue()).includes('</textarea></title>'), 'the field does not hold the text')
  await tab.sweep('markup')
  await tab.open(own(await find('My eleventh note')))
  await tab.sweep('long')

  // Nothing there.
  tab.allow(/status 404|404 \(Not Found\)/)
  equal((await tab.open('/memories/f00000000000000000000000000000000?user=ada')).status(), 404, 'the status of an unknown memory')
  await tab.axe('not found')
})
