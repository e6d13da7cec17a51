// Somebody imports what another tool knows, after a look at what is in it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check, equal, eventually, rest, run, token, url } from './lib.mjs'

// chatGPT returns conversations as ChatGPT exports them.
function chatGPT(said) {
  return said.map((text, i) => {
    const at = Date.UTC(2024, 3, 1 + i) / 1000
    const message = (id, role, part) => ({ id, author: { role }, create_time: at, metadata: { model_slug: 'gpt-4o' }, content: { content_type: 'text', parts: [part] } })
    const [asked, answered, hidden] = [`asked-${i}`, `answered-${i}`, `hidden-${i}`]
    return {
      id: `page-${i}`, conversation_id: `page-${i}`, title: `<b>${i}</b>`, create_time: at, current_node: answered,
      mapping: {
        [hidden]: { id: hidden, parent: null, children: [asked], message: { ...message(hidden, 'system', 'x'), metadata: { is_visually_hidden_from_conversation: true } } },
        [asked]: { id: asked, parent: hidden, children: [answered], message: message(asked, 'user', text) },
        [answered]: { id: answered, parent: asked, children: [], message: message(answered, 'assistant', 'I will.') },
      },
    }
  })
}

const dir = mkdtempSync(join(tmpdir(), 'remora-page-import-'))
const file = (name, content) => {
  writeFileSync(join(dir, name), typeof content === 'string' ? content : JSON.stringify(content))
  return join(dir, name)
}

try {
  await run(async (browser) => {
    const tab = await browser.tab()
    const { page } = tab
    await tab.login()
    const count = async (label) => Number((await page.locator('.figure', { hasText: label }).locator('.value').textContent()).replace(/\D/g, ''))
    const give = async (path) => {
      await tab.open('/import?user=carla')
      await page.locator('[name=for]').fill('carla')
      await page.locator('#file').setInputFiles(path)
    }

    await tab.open('/import?user=ada')
    for (const tool of ['ChatGPT', 'Claude Code', 'mem0', 'OpenMemory']) check(await page.locator('summary', { hasText: tool }).count() >= 1, `no help for ${tool}`)
    await page.locator('.tools summary').first().click()
    await tab.sweep('import')

    // What can't be imported keeps the person on the page.
    tab.allow(/422/)
    await give(file('notes.json', '{"nothing": true}'))
    await page.locator('.problem').waitFor()
    equal(await page.locator('[name=for]').inputValue(), 'carla', 'for whom, after a problem')
    await tab.sweep('problem')

    // A look, and no.
    const said = ['Remember that my kayak is called Petrel.', 'Remember that I keep bees on the roof.', 'Remember that my locker has the number 4711 <img src=x onerror=alert(1)>.']
    const conversations = file('conversations.json', chatGPT(said))
    await give(conversations)
    await page.waitForURL(/\/import\/[0-9a-f]{64}/)
    equal(await count('conversations'), 3, 'conversations')
    equal(await count('messages'), 6, 'messages')
    check((await page.locator('main').innerText()).includes('1 Apr 2024 to 3 Apr 2024'), 'the dates are not said')
    check((await page.locator('main').innerText()).includes('ChatGPT'), 'the format is not said')
    await tab.sweep('found')
    const found = page.url()
    equal((await rest('GET', '/v1/memories?user=carla')).memories.length, 0, 'memories before the import')

    // It is nobody else's.
    const other = await browser.tab()
    await other.login()
    other.allow(/404/)
    equal((await other.open(found.slice(url.length))).status(), 404, 'status of the upload of another session')
    const keyed = await browser.tab({ extraHTTPHeaders: { Authorization: `Bearer ${token}` } })
    keyed.allow(/404/)
    equal((await keyed.open(found.slice(url.length))).status(), 404, 'status of the upload without the session')

    await page.locator('button', { hasText: 'Discard' }).click()
    await page.locator('.toast', { hasText: 'Nothing was imported' }).waitFor()
    tab.allow(/404/)
    equal((await tab.open(found.slice(url.length))).status(), 404, 'status of what was discarded')

    // A look, and yes.
    await give(conversations)
    await page.waitForURL(/\/import\/[0-9a-f]{64}/)
    await page.locator('button', { hasText: 'Import it' }).click()
    await page.locator('text=See what was imported').waitFor()
    equal(await count('Turns queued'), 3, 'turns')
    await tab.sweep('done')
    await eventually('the facts of the import', async () => (await rest('GET', '/v1/memories?user=carla&kind=fact')).memories.length >= 2)
    await page.locator('a', { hasText: 'See what was imported' }).click()
    await page.locator('.row', { hasText: 'Petrel' }).first().waitFor()
    equal(await page.locator('main img').count(), 0, 'images from what was said')

    // Memories of mem0: the second time they are known. The browser sends what it is given by the button, too.
    const mem0 = file('mem0.json', { results: [
      { id: 'a', memory: 'Plays the cello in a quartet', user_id: 'x', created_at: '2024-05-01T10:00:00Z' },
      { id: 'b', memory: 'Has a cat called Zettel', user_id: 'x', created_at: '2024-05-02T10:00:00Z' },
    ] })
    for (const [label, want] of [['Memories saved', 2], ['Already known', 2]]) {
      await give(mem0)
      await page.waitForURL(/\/import\/[0-9a-f]{64}/)
      equal(await count('Memories kept by the tool'), 2, 'memories of mem0')
      await page.locator('button', { hasText: 'Import it' }).click()
      await page.locator('text=See what was imported').waitFor()
      equal(await count(label), want, label)
    }

    // A file that is dropped.
    await tab.open('/import?user=carla')
    const dropped = await page.evaluateHandle(() => {
      const data = new DataTransfer()
      data.items.add(new File([JSON.stringify({ results: [{ id: 'c', memory: 'Sails on Sundays', user_id: 'x' }] })], 'dropped <b>.json'))
      return data
    })
    await page.dispatchEvent('.drop', 'dragover', { dataTransfer: dropped })
    check(await page.locator('.drop[data-over]').count() === 1, 'nothing shows that the file can be dropped')
    await page.dispatchEvent('.drop', 'drop', { dataTransfer: dropped })
    await page.waitForURL(/\/import\/[0-9a-f]{64}/)
    equal(await page.locator('article h2').first().textContent(), 'dropped <b>.json', 'the name of the file')

    // Without JavaScript.
    const plain = await browser.tab({ javaScriptEnabled: false })
    await plain.login()
    await plain.open('/import?user=carla')
    await plain.page.locator('#file').setInputFiles(conversations)
    await plain.page.locator('button', { hasText: 'Check the file' }).click()
    await plain.page.locator('button', { hasText: 'Import it' }).click()
    await plain.page.locator('text=See what was imported').waitFor() // by the page's own refresh
  })
} finally {
  rmSync(dir, { recursive: true, force: true })
}
