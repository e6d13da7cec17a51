// What the scripts of the page have in common. A script calls run() with what it does. run() fails if a check failed, or
// if any tab saw an error in its console, an uncaught exception, a failed request, a violation of the content security
// policy, a request to another site, or a dialog.
import { mkdtempSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const need = createRequire(join(process.env.REMORA_NODE_MODULES, 'package.json'))
const { chromium } = need('playwright-core')
const axeSource = readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8')

export const url = process.env.REMORA_URL // of the control plane
export const proxy = process.env.REMORA_PROXY
export const token = process.env.REMORA_TOKEN
export const many = Number(process.env.REMORA_MANY) // memories of the user crowd
export const mallory = process.env.REMORA_MALLORY // a user whose name is markup

export const schemes = ['light', 'dark']
export const phone = { width: 390, height: 844 }
export const desktop = { width: 1280, height: 800 }

// patience bounds every wait, in milliseconds. Nothing that works takes as long, on a busy machine neither.
export const patience = 60_000

const script = basename(process.argv[1], '.mjs')

// check throws unless the condition holds.
export function check(condition, message) {
  if (!condition) throw new Error(message)
}

// equal throws unless both values are the same, as JSON.
export function equal(got, want, what) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)]
  check(a === b, `${what}: got ${a}, want ${b}`)
}

// run starts a browser and calls work(browser). The process fails if work throws, or if a tab has problems.
export async function run(work) {
  const profile = mkdtempSync(join(tmpdir(), 'remora-page-'))
  const browser = new Browser(profile)
  try {
    await browser.start()
    await work(browser)
    browser.fail()
  } catch (err) {
    for (const [i, tab] of browser.tabs.entries()) {
      console.error(`tab ${i}: ${tab.page.url()}`)
      await tab.shoot(`failed-${i}`).catch(() => {})
    }
    for (const problem of browser.problems()) console.error(problem)
    console.error(err)
    process.exitCode = 1
  } finally {
    await browser.close()
    rmSync(profile, { recursive: true, force: true })
  }
}

class Browser {
  constructor(profile) {
    this.profile = profile
    this.tabs = []
  }

  async start() {
    this.engine = await chromium.launch({
      executablePath: process.env.REMORA_CHROMIUM || '/usr/bin/chromium',
      args: ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync', '--disable-breakpad', '--disable-crash-reporter', `--disk-cache-dir=${this.profile}`],
    })
  }

  // tab opens a tab with cookies and storage of its own. The options are Playwright's of a context, such as viewport,
  // colorScheme, javaScriptEnabled and extraHTTPHeaders.
  async tab(options = {}) {
    const context = await this.engine.newContext({ viewport: desktop, colorScheme: 'light', reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'UTC', ...options })
    const tab = new Tab(context, await context.newPage())
    await tab.watch()
    this.tabs.push(tab)
    return tab
  }

  problems() {
    return this.tabs.flatMap((tab) => tab.problems)
  }

  // fail throws if any tab has problems.
  fail() {
    const all = this.problems()
    check(all.length === 0, `${all.length} problems:\n${all.join('\n')}`)
  }

  async close() {
    await this.engine?.close()
  }
}

class Tab {
  constructor(context, page) {
    this.context = context
    this.page = page
    this.problems = []
    this.allowed = []
    page.setDefaultTimeout(patience)
  }

  // allow has problems that match the pattern pass from now on, such as an answer of 422 that a script causes.
  allow(pattern) {
    this.allowed.push(pattern)
  }

  problem(text) {
    if (!this.allowed.some((pattern) => pattern.test(text))) this.problems.push(`${this.page.url()}: ${text}`)
  }

  async watch() {
    const { context, page } = this
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (e) => {
        console.error(`content security policy: ${e.violatedDirective} refuses ${e.blockedURI} (${e.sourceFile}:${e.lineNumber}) ${e.sample}`)
      })
    })
    page.on('console', (m) => {
      if (m.type() === 'error' || /content.security.policy/i.test(m.text())) this.problem(`console: ${m.text()} ${m.location().url}`)
    })
    page.on('pageerror', (err) => this.problem(`uncaught: ${err.stack || err}`))
    page.on('crash', () => this.problem('the tab crashed'))
    page.on('dialog', (d) => {
      this.problem(`a dialog opened: ${d.type()} ${d.message()}`)
      d.dismiss().catch(() => {})
    })
    page.on('popup', (other) => this.problem(`another window opened: ${other.url()}`))
    page.on('request', (r) => {
      const to = new URL(r.url())
      if (to.origin !== new URL(url).origin && !['data:', 'blob:', 'about:'].includes(to.protocol)) this.problem(`a request to another site: ${r.url()}`)
    })
    page.on('requestfailed', (r) => {
      // A stream ends when the tab goes elsewhere, and a download is no page.
      if (r.failure()?.errorText !== 'net::ERR_ABORTED') this.problem(`${r.method()} ${r.url()} failed: ${r.failure()?.errorText}`)
    })
    page.on('response', (r) => {
      if (r.status() >= 400) this.problem(`${r.request().method()} ${r.url()}: status ${r.status()}`)
    })
  }

  // open goes to a path of the control plane and returns the response.
  async open(path) {
    return await this.page.goto(url + path, { waitUntil: 'load', timeout: patience })
  }

  // login logs in with the key by the form, or with a one-time link if link is true.
  async login({ key = token, link = false } = {}) {
    if (link) {
      const to = new URL((await rest('POST', '/v1/login-links')).url)
      await this.open(to.pathname + to.search)
      await this.page.waitForURL((now) => now.pathname === '/', { timeout: patience }) // by a page that leads on
    } else {
      equal((await this.open('/login')).status(), 200, 'status of /login')
      await this.page.locator('[name=key]').fill(key)
      await Promise.all([
        this.page.waitForURL((to) => to.pathname !== '/login', { timeout: patience }),
        this.page.locator('form:has([name=key]) [type=submit], form:has([name=key]) button:not([type])').first().click(),
      ])
    }
    equal(new URL(this.page.url()).pathname, '/', 'where the login leads')
  }

  // axe checks the page as it is now, and throws if a rule is violated.
  async axe(where = '') {
    const { page } = this
    if (!await page.evaluate(() => typeof globalThis.axe === 'object')) await page.evaluate(axeSource)
    const found = await page.evaluate(async () => {
      const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] })
      return violations.map((v) => `${v.id} (${v.impact}): ${v.help}\n` + v.nodes.slice(0, 5).map((n) => `    ${n.target.join(' ')}: ${n.html.slice(0, 200)}\n      ${n.failureSummary.replaceAll('\n', ' ')}`).join('\n'))
    })
    check(found.length === 0, `axe: ${page.url()} ${where}: ${found.length} violations\n  ${found.join('\n  ')}`)
  }

  // fits throws if the page is wider than its window.
  async fits(where = '') {
    const found = await this.page.evaluate(() => {
      const root = document.scrollingElement
      if (root.scrollWidth <= root.clientWidth) return null
      const wide = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1)
      return `${root.scrollWidth} px wide, the window ${root.clientWidth}: ${wide.slice(0, 5).map((e) => e.outerHTML.slice(0, 120)).join(' | ')}`
    })
    check(found === null, `${this.page.url()} ${where} scrolls sideways: ${found}`)
  }

  // shoot takes a picture of the whole page if there is a directory for pictures.
  async shoot(name) {
    const dir = process.env.REMORA_SHOTS
    if (!dir) return
    mkdirSync(dir, { recursive: true })
    await this.page.screenshot({ path: join(dir, `${script}-${name}.png`), fullPage: true, animations: 'disabled' })
  }

  // sweep checks the page as it is now on a phone and on a desktop, in light and in dark colours: axe's rules, that
  // nothing scrolls sideways, and takes a picture of each. It leaves the tab on a desktop in light colours.
  async sweep(name) {
    for (const size of [phone, desktop]) {
      await this.page.setViewportSize(size)
      for (const scheme of schemes) {
        await this.page.emulateMedia({ colorScheme: scheme })
        const where = `${scheme}-${size.width}`
        await this.fits(where)
        await this.axe(where)
        await this.shoot(`${name}-${where}`)
      }
    }
    await this.page.emulateMedia({ colorScheme: 'light' })
  }
}

// rest sends a request to the control plane as the admin, without the browser, and returns the answer's JSON.
export async function rest(method, path, body, headers = {}) {
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  check(response.ok, `${method} ${path}: status ${response.status} ${text}`)
  return text === '' ? null : JSON.parse(text)
}

// say sends a question to the model through the proxy, after what was said before in messages, and returns what memory
// did and the answer. A model whose name begins with claude is asked through the Messages API.
export async function say({ user = 'ada', conversation, text, messages = [], model = 'gpt-5.1', client = 'opencode/1.0.134', memory = 'on' }) {
  const anthropic = model.startsWith('claude')
  const response = await fetch(proxy + (anthropic ? '/v1/messages' : '/v1/chat/completions'), {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json', Authorization: 'Bearer sk-of-everybody', 'User-Agent': client,
      'X-Remora-User': user, 'X-Remora-Memory': memory, ...(conversation ? { 'X-Remora-Conversation': conversation } : {}),
    },
    body: JSON.stringify({ model, ...(anthropic ? { max_tokens: 1024 } : {}), messages: [...messages, { role: 'user', content: text }] }),
  })
  const answer = await response.json()
  check(response.ok, `a request through the proxy: status ${response.status}`)
  return {
    status: response.headers.get('X-Remora-Status'),
    memories: Number(response.headers.get('X-Remora-Memories')),
    text: anthropic ? answer.content[0].text : answer.choices[0].message.content,
  }
}

// eventually calls done until it returns something true, and returns that.
export async function eventually(what, done) {
  for (const start = Date.now(); ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    const got = await done()
    if (got) return got
    check(Date.now() - start < patience, `waited in vain: ${what}`)
  }
}
