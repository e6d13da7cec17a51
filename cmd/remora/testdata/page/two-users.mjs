// Two people, whom a proxy in front of Remora has named, never see each other: in no view, not by an address, and not by
// a form.
import { check, equal, rest, run, url } from './lib.mjs'

const words = { ada: ['Marbella', 'Bechstein', 'peanuts', 'Cascais'], bob: ['Peugeot', 'Rotterdam', 'Cornelis', 'Tuesdays'] }
const views = ['/', '/memories', '/memories?q=bicycle+boat', '/memories?state=superseded&state=quarantined', '/review', '/review?tab=quarantine', '/review?tab=contradictions', '/review?tab=forget',
  '/review?tab=sources', '/try?message=What+is+my+boat+called+and+which+bicycle+do+I+have%3F', '/people', '/benefit', '/import', '/health']

await run(async (browser) => {
  for (const [me, other] of [['ada', 'bob'], ['bob', 'ada']]) {
    const tab = await browser.tab({ extraHTTPHeaders: { 'X-Remora-User': me } })
    const { page } = tab
    await tab.login()
    const mine = (await rest('GET', `/v1/memories?user=${me}&limit=5`)).memories
    const theirs = (await rest('GET', `/v1/memories?user=${other}&limit=5`)).memories
    const exchange = (await rest('GET', `/v1/exchanges?user=${other}&limit=1`)).exchanges[0]
    for (const view of views) {
      await tab.open(view)
      const html = await page.content()
      for (const word of words[other]) check(!html.includes(word), `${me} sees ${word} at ${view}`)
      check(!new RegExp(`[?&"]user=${other}\\b|>\\s*${other}\\s*<`).test(html), `${me} sees the name of ${other} at ${view}`)
    }
    check((await page.goto(`${url}/memories/${encodeURIComponent(mine[0].id)}`)).status() === 200, 'a memory of their own')

    tab.allow(/status 4\d\d|status of 4\d\d/)
    const foreign = theirs.map((m) => `/memories/${encodeURIComponent(m.id)}`).concat(`/exchanges/${exchange.id}`, `/memories?user=${other}`, `/?user=${other}`, `/benefit?user=${other}`,
      `/people/export?user=${other}`, `/people/erase?user=${other}`, `/try?user=${other}&message=boat+bicycle`, `/memories/${encodeURIComponent(theirs[0].id)}?user=${other}`)
    for (const path of foreign) {
      const response = await page.goto(url + path)
      equal(response.status(), 404, `${me} at ${path}`)
      const html = await page.content()
      for (const word of words[other]) check(!html.includes(word), `${me} sees ${word} at ${path}`)
    }

    // Forms that name what is somebody else's.
    await tab.open('/memories')
    const id = theirs[0].id
    const posts = [[`/memories/${encodeURIComponent(id)}`, { do: 'forget' }], [`/memories/${encodeURIComponent(id)}?user=${other}`, { do: 'save', text: 'taken over' }],
      ['/memories/bulk', { do: 'forget', id }], [`/memories/bulk?user=${other}`, { do: 'forget', id }], [`/people/erase?user=${other}`, { confirm: other, user: other }]]
    for (const [path, fields] of posts) {
      await page.evaluate(async ([path, fields]) => (await fetch(path, { method: 'POST', body: new URLSearchParams(fields) })).status, [path, fields])
    }
    const after = (await rest('GET', `/v1/memories?user=${other}&limit=5`)).memories
    equal(after.map((m) => [m.id, m.text, m.state]), theirs.map((m) => [m.id, m.text, m.state]), `${other}'s memories after ${me} tried`)
  }
})
