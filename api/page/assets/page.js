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

document.addEventListener('htmx:after:swap', (event) => {
  const target = event.detail.ctx?.target ?? event.target;
  if (target?.id === 'detail') {
    const id = one('[data-memory]', target)?.dataset.memory ?? '';
    if (one('#results')) {
      setParameter('id', id);
      for (const line of all('#rows .line')) line.toggleAttribute('aria-current', line.dataset.id === id);
      for (const line of all('#rows .line[aria-current]')) line.setAttribute('aria-current', 'true');
    }
  }
  watchToasts();
});

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

// --- selecting -----------------------------------------------------------

document.addEventListener('change', (event) => {
  if (!event.target.matches('[form=bulk]')) return;
  const n = all('#rows input:checked').length;
  const label = one('[data-selected]');
  if (label) label.textContent = n + ' selected:';
});

// In a narrow window there is no room beside the list: a memory opens on its own
// page, as without this script.
document.addEventListener('click', (event) => {
  if (event.target.closest('#rows .line') && matchMedia('(max-width: 60rem)').matches) event.stopImmediatePropagation();
}, true);

// Menus that were opened by a button close when something in them is chosen.
document.addEventListener('click', (event) => {
  if (event.target.closest('.menu a')) one('#menu')?.hidePopover?.();
});

// --- live ----------------------------------------------------------------

const maxLive = 500; // rows that stay on the page

function live() {
  const list = one('#exchanges[data-events]');
  const state = one('#live-state');
  if (!list || !window.EventSource) return;
  let waiting = [];
  let paused = false;
  const source = new EventSource(list.dataset.events);
  const show = (rows) => {
    list.insertAdjacentHTML('afterbegin', rows.join(''));
    htmx.process(list);
    while (list.children.length > maxLive) list.lastElementChild.remove();
    one('#live-empty')?.remove();
  };
  const tell = () => { state.textContent = paused ? `Paused, ${waiting.length} waiting` : source.readyState === 1 ? 'Live' : 'Connecting…'; state.dataset.tone = paused ? 'warn' : source.readyState === 1 ? 'good' : 'plain'; };
  source.addEventListener('open', tell);
  source.addEventListener('error', tell);
  source.addEventListener('exchange', (event) => {
    if (one('#' + CSS.escape(event.lastEventId))) return;
    if (paused) waiting = [event.data, ...waiting].slice(0, maxLive); else show([event.data]);
    tell();
  });
  const button = one('#pause');
  button.hidden = false;
  button.addEventListener('click', () => {
    paused = !paused;
    button.setAttribute('aria-pressed', paused);
    button.textContent = paused ? 'Go on' : 'Pause';
    if (!paused) { show(waiting); waiting = []; }
    tell();
  });
  addEventListener('pagehide', () => source.close());
}

// --- charts --------------------------------------------------------------

// Each chart's data is in a <script type="application/json"> within it:
// {x: [seconds], series: [{name, values, tone}], unit, stacked}.
function charts() {
  if (!window.uPlot) return;
  for (const box of all('.chart')) {
    const data = JSON.parse(one('script', box).textContent);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue('--' + name).trim();
    const axis = { stroke: colour('ink-2'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false }, font: '12px ' + style.getPropertyValue('--sans') };
    const make = () => {
      one('.uplot', box)?.remove();
      new uPlot({
        width: box.clientWidth, height: 180, legend: { live: true }, cursor: { y: false },
        scales: { y: { range: (u, low, high) => [0, data.max ?? Math.max(high * 1.1, 1)] } },
        series: [{}, ...data.series.map((s) => ({ label: s.name, stroke: colour(s.tone), width: 2, points: { size: 5 }, fill: s.fill ? colour(s.tone + '-soft') : undefined, value: (u, v) => v == null ? '–' : v.toLocaleString('en', { maximumFractionDigits: 2 }) + (data.unit ?? '') }))],
        axes: [axis, { ...axis, size: 52, values: (u, values) => values.map((v) => v.toLocaleString('en') + (data.unit ?? '')) }],
      }, [data.x, ...data.series.map((s) => s.values)], box);
    };
    make();
    new ResizeObserver((entries) => { if (Math.abs(entries[0].contentRect.width - (one('.uplot', box)?.clientWidth ?? 0)) > 8) make(); }).observe(box);
  }
}

// --- files ---------------------------------------------------------------

function drops() {
  for (const zone of all('[data-drop]')) {
    const input = one('input[type=file]', zone);
    const hover = (on) => (event) => { event.preventDefault(); zone.toggleAttribute('data-over', on); };
    zone.addEventListener('dragover', hover(true));
    zone.addEventListener('dragleave', hover(false));
    zone.addEventListener('drop', (event) => {
      hover(false)(event);
      if (!event.dataTransfer.files.length) return;
      input.files = event.dataTransfer.files;
      zone.closest('form').requestSubmit();
    });
    input.addEventListener('change', () => { if (input.files.length) zone.closest('form').requestSubmit(); });
  }
  for (const form of all('form[data-busy]')) {
    form.addEventListener('submit', () => { form.setAttribute('aria-busy', 'true'); one('[data-busy-text]', form)?.removeAttribute('hidden'); });
  }
}

document.addEventListener('click', (event) => { if (event.target.closest('[data-print]')) print(); });

document.documentElement.dataset.script = '';
watchToasts();
live();
charts();
drops();
