// The page's own script: keys, the address of a chosen memory, messages that go
// away, exchanges as they come, charts, and files that are dropped. Without it
// everything can still be read, edited and deleted.
'use strict';

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const typing = (element) => element && (element.matches('input:not([type=checkbox]), textarea, select') || element.isContentEditable);

// --- addresses -----------------------------------------------------------

// setParameter changes one parameter of the address; '' removes it.
function setParameter(name, value) {
  const url = new URL(location.href);
  if (value) url.searchParams.set(name, value);
  else url.searchParams.delete(name);
  history.replaceState(history.state, '', url);
}

// Fields that are empty are not sent, so that addresses stay short.
document.addEventListener('htmx:config:request', (event) => {
  const request = event.detail.ctx.request;
  if (request.method !== 'GET' || !(request.body instanceof FormData)) return;
  for (const [name, value] of [...request.body]) if (value === '') request.body.delete(name);
});

// markChosen marks the memory beside the list in the list, and in the address.
function markChosen() {
  if (!one('#results') || !one('#detail')) return;
  const id = one('#detail [data-memory]')?.dataset.memory ?? '';
  setParameter('id', id);
  for (const line of all('#rows .line')) {
    if (line.dataset.id === id) line.setAttribute('aria-current', 'true');
    else line.removeAttribute('aria-current');
  }
}

document.addEventListener('htmx:after:swap', () => {
  markChosen();
  watchToasts();
});
document.addEventListener('htmx:after:history:replace', markChosen);

// --- messages ------------------------------------------------------------

const toastTime = 12000;

function watchToasts() {
  for (const toast of all('.toast:not([data-seen])')) {
    toast.dataset.seen = '';
    one('[data-close]', toast)?.addEventListener('click', () => toast.remove());
    setTimeout(() => { if (!toast.matches(':hover, :focus-within')) toast.remove(); }, toastTime);
  }
}

// --- keys ----------------------------------------------------------------

const current = () => one('#rows .line[aria-current]') ?? (document.activeElement?.matches('#rows .line') ? document.activeElement : null);

// move chooses the next or previous memory of the list.
function move(step) {
  const lines = all('#rows .line');
  if (!lines.length) return;
  const at = lines.indexOf(current());
  const next = lines[Math.max(0, Math.min(lines.length - 1, at + step))];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
  next.click();
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === 'Escape' && typing(document.activeElement)) return document.activeElement.blur();
  if (event.target.id === 'q' && event.key === 'ArrowDown') { event.preventDefault(); return move(0); }
  if (typing(event.target)) return;
  const list = one('#rows');
  switch (event.key) {
    case '?': return showKeys();
    case 'ArrowDown': case 'j': if (list) { event.preventDefault(); move(1); } return;
    case 'ArrowUp': case 'k': if (list) { event.preventDefault(); move(-1); } return;
    case 'x': {
      const box = current()?.closest('.row')?.querySelector('input[type=checkbox]');
      if (box) { box.checked = !box.checked; box.dispatchEvent(new Event('change', { bubbles: true })); }
      return;
    }
  }
  if (event.key === 'Delete') return press('d', event);
  press(event.key, event);
});

// press does what an element with that key does when it is clicked.
function press(key, event) {
  const element = all('[data-key]').find((e) => e.dataset.key === key && e.offsetParent !== null);
  if (!element) return;
  event.preventDefault();
  if (element.matches('input')) { element.focus(); element.select(); return; }
  element.click();
  if (element.matches('summary')) one('textarea', element.parentElement)?.focus();
}

// showKeys opens the list of keys.
function showKeys() {
  one('#menu:popover-open')?.hidePopover();
  const keys = one('#keys');
  if (keys && !keys.open) keys.showModal();
}

// Browsers that know of commands open it without this.
if (!('command' in HTMLButtonElement.prototype)) one('[commandfor=keys]')?.addEventListener('click', showKeys);

// --- selecting -----------------------------------------------------------

document.addEventListener('change', (event) => {
  if (!event.target.matches('[form=bulk]')) return;
  const n = all('[form=bulk]:checked').length;
  const label = one('[data-selected]');
  if (label) label.textContent = n + ' selected:';
});

// A memory of the list is shown beside it. In a narrow window there is no room:
// it opens on its own page, as without this script.
document.addEventListener('click', (event) => {
  const line = event.target.closest('#rows .line');
  if (!line || event.button || event.ctrlKey || event.metaKey || event.shiftKey || matchMedia('(max-width: 60rem)').matches) return;
  event.preventDefault();
  htmx.ajax('GET', line.href, { source: '#detail', target: '#detail', swap: 'innerHTML' });
});

// Menus that were opened by a button close when something in them is chosen.
document.addEventListener('click', (event) => {
  if (event.target.closest('.menu a')) one('#menu')?.hidePopover?.();
});

// --- live ----------------------------------------------------------------

const maxLive = 500; // rows that stay on the page
const ageEvery = 20000;

// live has exchanges appear in the list as they come. The stream is closed while
// nobody can see the page: a browser has few connections to a host. What came
// meanwhile is sent when it opens again.
const live = {
  source: null, last: '', paused: false, waiting: new Map(),

  list: () => one('#live-list[data-events]'),

  open() {
    live.close();
    const list = live.list();
    if (!list || !window.EventSource || document.hidden) return live.tell();
    const address = new URL(list.dataset.events, location.href);
    if (live.last) address.searchParams.set('after', live.last);
    live.source = new EventSource(address);
    live.source.addEventListener('open', live.tell);
    live.source.addEventListener('error', live.tell);
    live.source.addEventListener('relist', live.relist);
    live.source.addEventListener('exchange', (event) => {
      live.last = event.lastEventId;
      live.waiting.set(event.lastEventId, event.data);
      if (!live.paused) live.show();
      else if (live.waiting.size > maxLive) live.waiting.delete([...live.waiting.keys()].sort()[0]);
      live.tell();
    });
    live.tell();
  },

  close() {
    live.source?.close();
    live.source = null;
  },

  // relist has the list read again, as the form says.
  relist() {
    live.close();
    one('#live-filters')?.dispatchEvent(new Event('relist'));
  },

  // again is for a list that was read again.
  again() {
    live.last = '';
    live.waiting.clear();
    live.open();
  },

  // show inserts the rows that wait, each at its place: ids sort by time.
  show() {
    const list = one('#exchanges');
    for (const [id, row] of [...live.waiting].sort()) {
      if (document.getElementById(id)) continue;
      const next = all(':scope > li:not(.more)', list).find((li) => li.id < id);
      if (next) next.insertAdjacentHTML('beforebegin', row);
      else if (one('.more', list)?.hidden ?? true) (one('.more', list) ?? list).insertAdjacentHTML(one('.more', list) ? 'beforebegin' : 'beforeend', row);
    }
    live.waiting.clear();
    if (list.querySelector('li:not(.more)')) one('#live-empty')?.remove();
    live.prune(list);
  },

  // prune takes the oldest rows away. The link to earlier ones leads to them.
  prune(list) {
    const rows = all(':scope > li:not(.more)', list);
    const more = one('.more', list);
    if (rows.length <= maxLive || !more) return;
    for (const row of rows.splice(maxLive)) row.remove();
    const link = one('a', more);
    const address = new URL(link.href);
    address.searchParams.set('cursor', rows.at(-1).id);
    const earlier = document.createElement('a');
    earlier.textContent = link.textContent;
    earlier.href = address.pathname + address.search;
    link.replaceWith(earlier);
    more.hidden = false;
  },

  tell() {
    const state = one('#live-state');
    if (!state) return;
    const ready = live.source?.readyState;
    const [text, tone] = live.paused ? [`Paused, ${live.waiting.size} waiting`, 'warn'] : !live.list() ? ['Not live', 'plain']
      : ready === 1 ? ['Live', 'good'] : ready === 0 ? ['Connecting…', 'plain'] : ['Not live', 'bad'];
    state.hidden = false;
    state.textContent = text;
    state.className = 'chip ' + tone;
    one('#pause').hidden = !live.list() || ready === undefined && !live.paused;
    one('#reload').hidden = !one('#pause').hidden && (ready === 1 || live.paused);
  },

  pause() {
    live.paused = !live.paused;
    const button = one('#pause');
    button.setAttribute('aria-pressed', live.paused);
    button.textContent = live.paused ? 'Resume' : 'Pause';
    if (!live.paused) live.show();
    live.tell();
  },

  // ages writes how long ago exchanges were, as the server does.
  ages() {
    for (const time of all('#exchanges time')) {
      const minutes = Math.floor((Date.now() - Date.parse(time.dateTime)) / 60000);
      if (minutes >= 1 && minutes < 60) time.textContent = `${minutes} min ago`;
      else if (minutes >= 60 && minutes < 1440) time.textContent = `${Math.floor(minutes / 60)} h ago`;
    }
  },

  start() {
    if (!one('#live-list')) return;
    one('#pause').addEventListener('click', live.pause);
    document.addEventListener('htmx:after:swap', () => { if (live.list()?.dataset.events !== live.of) { live.of = live.list()?.dataset.events; live.again(); } });
    document.addEventListener('visibilitychange', () => { if (document.hidden) live.close(); else live.open(); });
    addEventListener('pagehide', live.close);
    addEventListener('pageshow', (event) => { if (event.persisted) live.open(); });
    setInterval(live.ages, ageEvery);
    live.of = live.list()?.dataset.events;
    live.open();
  },
};

// --- charts --------------------------------------------------------------

// Each chart's data is in a <script type="application/json"> within it:
// {x: [seconds], series: [{name, values, tone, dash}], unit, max, stacked}.
// Its numbers are in a table below, too, which is open without this script.

// colour returns a colour of the stylesheet as the canvas understands it.
function colour(name) {
  const probe = document.body.appendChild(document.createElement('i'));
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const written = (v, unit) => v == null ? '–' : v.toLocaleString('en', { maximumFractionDigits: v < 10 ? 2 : 0 }) + (unit ?? '');

// named writes the time of a step, in UTC.
function named(at, hours) {
  return new Date(at * 1000).toLocaleString('en-GB', { timeZone: 'UTC', ...(hours ? { hour: '2-digit', minute: '2-digit' } : { day: 'numeric', month: 'short' }) });
}

// stacked returns series that lie on top of each other, the highest first: what
// is drawn later covers the lower part of it.
function stacked(series) {
  const sums = series[0].values.map(() => 0);
  return series.map((s) => ({ ...s, raw: s.values, values: s.values.map((v, i) => (sums[i] += v ?? 0)) })).reverse();
}

function draw(box) {
  const data = JSON.parse(one('script', box).textContent);
  const series = data.stacked ? stacked(data.series) : data.series;
  const step = data.x.length > 1 ? data.x[1] - data.x[0] : 3600;
  const axis = { stroke: colour('ink-2'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false }, font: '12px ' + getComputedStyle(document.body).fontFamily };
  one('.uplot', box)?.remove();
  new uPlot({
    width: box.clientWidth, height: 190, cursor: { y: false, drag: { x: false, y: false } }, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), 'Etc/UTC'),
    scales: {
      x: { range: (u, low, high) => [low - step / 2, high + step / 2] },
      y: { range: (u, low, high) => [0, data.max ?? Math.max((high ?? 0) * 1.1, 1)] },
    },
    series: [
      { label: step < 86400 ? 'Hour' : 'Day', value: (u, at) => at == null ? '–' : named(at, step < 86400) },
      ...series.map((s) => ({
        label: s.name, stroke: colour(s.tone), width: data.stacked ? 0 : 2, points: { show: !data.stacked, size: 6, fill: colour(s.tone) }, dash: s.dash ? [5, 4] : undefined,
        fill: data.stacked ? colour(s.tone) : undefined, paths: data.stacked ? uPlot.paths.bars({ size: [0.7, 48] }) : undefined,
        value: (u, v, n, i) => i == null ? '–' : written((s.raw ?? s.values)[i], data.unit),
      })),
    ],
    axes: [{ ...axis, space: 64, incrs: (step < 86400 ? [1, 2, 3, 4, 6, 12, 24] : [24, 48, 72, 168, 336]).map((hours) => hours * 3600), values: (u, times) => times.map((at) => named(at, step < 86400)) }, { ...axis, size: 56, values: (u, values) => values.map((v) => written(v, data.unit)) }],
  }, [data.x, ...series.map((s) => s.values)], box);
}

function charts() {
  if (!window.uPlot) return;
  for (const table of all('details[data-close-with-script]')) { table.open = false; delete table.dataset.closeWithScript; }
  for (const box of all('.chart:not([data-drawn])')) {
    box.dataset.drawn = '';
    draw(box);
    new ResizeObserver(() => { if (box.isConnected && Math.abs(box.clientWidth - one('.uplot', box).clientWidth) > 2) draw(box); }).observe(box);
  }
}

document.addEventListener('htmx:after:swap', charts);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { if (window.uPlot) all('.chart').forEach(draw); });

// --- health --------------------------------------------------------------

// What reads itself again does so only while somebody can see it.
document.addEventListener('htmx:before:request', (event) => {
  if (document.hidden && event.detail.ctx?.sourceElement?.matches('[data-while-visible]')) event.preventDefault();
});

// --- files ---------------------------------------------------------------

function drops() {
  for (const zone of all('[data-drop]')) {
    const input = one('input[type=file]', zone);
    const send = () => {
      if (!input.files.length) return;
      input.setCustomValidity(input.files[0].size > Number(input.dataset.max) ? 'This file is too large.' : '');
      zone.closest('form').requestSubmit(); // which says what is wrong, if something is
    };
    const hover = (on) => (event) => { event.preventDefault(); zone.toggleAttribute('data-over', on); };
    zone.addEventListener('dragover', hover(true));
    zone.addEventListener('dragleave', hover(false));
    zone.addEventListener('drop', (event) => {
      hover(false)(event);
      if (!event.dataTransfer.files.length) return;
      input.files = event.dataTransfer.files;
      send();
    });
    input.addEventListener('change', send);
  }
  for (const form of all('form[data-busy]')) {
    form.addEventListener('submit', () => { form.setAttribute('aria-busy', 'true'); one('[data-busy-text]', form)?.removeAttribute('hidden'); });
  }
}

document.addEventListener('click', (event) => { if (event.target.closest('[data-print]')) print(); });

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button || !navigator.clipboard) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = 'Copied';
});

document.documentElement.dataset.script = '';
watchToasts();
live.start();
charts();
drops();
