// What one exchange was given and why: the inserted bytes, the candidates, and what can be done about them.
import { check, equal, eventually, proxy, rest, run, say } from './lib.mjs'

// received returns the bodies of Chat Completions that the model was sent, as text.
async function received() {
  const response = await fetch(`${proxy}/recorded`, { headers: { Authorization: 'Bearer sk-of-everybody', 'X-Remora-Memory': 'off' } })
  check(response.ok, `what the model received: status ${response.status}`)
  return await response.json()
}

// insertedIn returns the blocks in the messages of a body.
function insertedIn(body) {
  const texts = JSON.parse(body).messages.map((m) => typeof m.content === 'string' ? m.content : m.content.map((part) => part.text ?? '').join(''))
  return texts.flatMap((text) => text.match(/<remora-memory-[0-9a-f]+>\n[^]*?<\/remora-memory-[0-9a-f]+>\n?/g) ?? [])
}

await run(async (browser) => {
  const tab = await browser.tab()
  const { page } = tab
  await tab.login()
  const find = async (query, user = 'ada') => (await rest('GET', `/v1/exchanges?user=${user}&limit=500&${query}`)).exchanges
  const open = async (x) => await tab.open(`/exchanges/${x.id}?user=${encodeURIComponent(x.user)}`)
  // shown returns the text of each block on the page.
  const shown = async (kind) => await page.locator(`.insertion${kind} .block`).evaluateAll((all) => all.map((block) => [...block.querySelectorAll('.words')].map((line) => line.textContent).join('\n') + '\n'))

  // A block that was inserted, and one that was inserted again, are shown exactly as the model received them.
  const bodies = await received()
  for (const [conversation, kinds] of [['question 2', ['[data-new]', '[data-replayed]']]]) {
    const [again, first] = await find(`conversation=${encodeURIComponent(conversation)}`)
    for (const [x, kind] of [[first, kinds[0]], [again, kinds[1]]]) {
      await open(x)
      const blocks = await shown(kind)
      equal(blocks.length, 1, `blocks ${kind} of “${x.query}”`)
      equal(blocks[0], x.inserted[0].text, `the block ${kind} and the receipt`)
      const body = bodies.filter((b) => JSON.parse(b).messages.at(-1).content === x.query).find((b) => insertedIn(b).includes(blocks[0]))
      check(body !== undefined, `no request that the model received has the block that is shown: ${blocks[0]}`)
      equal(insertedIn(body), blocks, 'all blocks that the model received')
      check((await page.locator('.insertion').innerText()).includes(`${Buffer.byteLength(blocks[0])} bytes`), 'the number of bytes is not shown')
      equal(await page.locator('.insertion .block a').count(), x.inserted[0].spans.length, 'lines that lead to a memory')
    }
  }
  await tab.sweep('replayed')
  await page.getByRole('link', { name: 'first inserted in an earlier exchange' }).click()
  await page.locator('.insertion[data-new]').waitFor()
  equal(await page.locator('.verdict .chip').textContent(), 'injected', 'status of the earlier exchange')

  // The conversation around it, forwards and back, with each block before what it was inserted before.
  const question = 'Which database does the billing service use, and until when?'
  const answer = await say({ conversation: 'around', text: question })
  equal(answer.status, 'injected', 'status of a question')
  const [one] = await eventually('its receipt', async () => await find('conversation=around').then((all) => all.length && all))
  await eventually('its passages', async () => (await rest('GET', `/v1/exchanges/${one.id}/conversation?user=ada`)).turn.length === 2)
  equal((await say({ conversation: 'around', text: 'Thanks!', messages: [{ role: 'user', content: question }, { role: 'assistant', content: answer.text }] })).status, 'replayed', 'status of what follows')
  const two = await eventually('the other receipt', async () => (await find('conversation=around')).find((x) => x.id !== one.id))
  await eventually('its passages', async () => (await rest('GET', `/v1/exchanges/${two.id}/conversation?user=ada`)).turn.length > 0)
  await open(one)
  await page.locator('.insertion[data-new]').waitFor()
  await page.getByRole('link', { name: 'Later →' }).click()
  await page.locator('.insertion[data-replayed]').waitFor()
  equal(new URL(page.url()).pathname, `/exchanges/${two.id}`, 'the later exchange')
  const talk = await page.locator('#request .talk > li').allInnerTexts()
  const at = (text) => talk.findIndex((t) => t.includes(text))
  check(at('inserted again') === 0 && at(question) === 1 && at('Thanks!') > at(question), `the order of what was said: ${talk.join(' | ')}`)
  await tab.sweep('around')
  await page.getByRole('link', { name: '← Earlier' }).click()
  await page.locator('.insertion[data-new]').waitFor()

  // A line of the block leads to its memory, and so does the candidate.
  const candidates = page.locator('[data-candidate]')
  check(await candidates.count() > 0, 'there is no candidate')
  await candidates.first().locator('summary').click()
  check(await candidates.first().locator('.parts tr').count() > 1, 'the score is not taken apart')
  await tab.sweep('injected')
  await page.locator('.insertion .block a').first().click()
  await page.waitForURL((to) => to.pathname.startsWith('/memories/'))

  // Never for this kind of question: what is asked again is answered without it, until that is taken back.
  const asked = 'What is my boat called, and where does it lie?'
  const [boat] = await find(`conversation=${encodeURIComponent('question 1')}&status=injected`)
  await open(boat)
  const insertedNow = async () => (await rest('POST', '/v1/recall?user=ada', { message: asked })).results.map((r) => r.memory.id)
  const id = await page.locator('[data-candidate]').first().getAttribute('data-candidate')
  check((await insertedNow()).includes(id), 'the first candidate is not found before it is unwanted')
  await page.locator(`[data-candidate="${id}"]`).getByRole('button', { name: 'Never for this kind of question' }).click()
  await page.locator('.toast', { hasText: 'not recalled any more' }).waitFor()
  equal(new URL(page.url()).pathname, `/exchanges/${boat.id}`, 'where the answer leads')
  check((await page.locator(`[data-candidate="${id}"]`).innerText()).includes('not for 1 kind of question'), 'that it is unwanted is not shown')
  await eventually('it is not found', async () => !(await insertedNow()).includes(id))
  await tab.sweep('unwanted')
  // Saying it twice leaves nothing to take back.
  await page.locator(`[data-candidate="${id}"]`).getByRole('button', { name: 'Never for this kind of question' }).click()
  await page.locator('.toast').waitFor()
  equal(await page.locator('.toast').getByRole('button', { name: 'Undo' }).count(), 0, 'undo of what changed nothing')
  await page.locator(`[data-candidate="${id}"]`).getByRole('button', { name: 'Want it again' }).click()
  await page.locator('.toast', { hasText: 'again' }).waitFor()
  await eventually('it is found again', async () => (await insertedNow()).includes(id))
  await page.locator(`[data-candidate="${id}"]`).getByRole('button', { name: 'Never for this kind of question' }).click()
  await page.locator('.toast').getByRole('button', { name: 'Undo' }).click()
  await page.locator('.toast', { hasText: /taken back/i }).waitFor()
  equal(new URL(page.url()).pathname, `/exchanges/${boat.id}`, 'where undo leads')
  await eventually('it is found again', async () => (await insertedNow()).includes(id))

  // Forget, and take it back.
  await page.locator(`[data-candidate="${id}"]`).getByRole('button', { name: 'Forget' }).click()
  await page.locator('.toast', { hasText: 'Forgotten' }).waitFor()
  equal(new URL(page.url()).pathname, `/exchanges/${boat.id}`, 'where forgetting leads')
  equal(await page.locator(`[data-candidate="${id}"] .actions`).count(), 0, 'what can be done with a memory that is gone')
  await page.locator('.toast').getByRole('button', { name: 'Undo' }).click()
  await eventually('it is back', async () => (await insertedNow()).includes(id))

  // An exchange without insertions says why, and one without a question is readable.
  for (const [status, words] of [['empty', /Nothing was inserted\. (Nothing that|What matches|All that)/], ['observed', /Nothing was inserted\. Memories were found but not inserted/]]) {
    const [x] = await find(`status=${status}`)
    await open(x)
    check(words.test((await page.locator('.verdict').innerText()).replaceAll(/\s+/g, ' ')), `why nothing was inserted: ${await page.locator('.verdict').innerText()}`)
    equal(await page.locator('.insertion').count(), 0, `insertions of what was ${status}`)
    await tab.sweep(status)
  }

  // What looks like markup is text.
  const hostile = (await find('limit=500')).find((x) => x.conversation?.includes('asked'))
  await open(hostile)
  check((await page.locator('.receipt-head').innerText()).includes('gpt-<img src=x onerror=alert("model")>'), 'the model is not shown as text')
  check((await page.locator('#request').innerText()).includes('<img src=x onerror=alert("question")>'), 'the question is not shown as text')
  equal(await page.locator('main img, main script, main iframe').count(), 0, 'elements made of texts')
  await tab.sweep('markup')

  // Without JavaScript all of it is there.
  const plain = await browser.tab({ javaScriptEnabled: false })
  await plain.login()
  await plain.open(`/exchanges/${boat.id}?user=ada`)
  check(await plain.page.locator('.insertion .block').isVisible(), 'the block is not shown without JavaScript')
})
