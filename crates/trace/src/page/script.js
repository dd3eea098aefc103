'use strict';
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const details = document.getElementById('details');
  const rows = document.getElementById('rows');
  const heads = rows ? all('thead th', rows).map((cell) => cell.textContent) : [];
  const series = document.querySelector('.series');
  const partNames = series ? series.dataset.parts.split('|') : [];
  let lit = [];

  // Details: what the table says about a bar or a column, in one place at the foot of the window.
  const pair = (name, value) => {
    const box = document.createElement('div');
    const term = box.appendChild(document.createElement('dt'));
    const text = box.appendChild(document.createElement('dd'));
    term.textContent = name;
    text.textContent = value;
    return box;
  };
  const show = (row) => {
    if (!row) return;
    lit.forEach((element) => element.classList.remove('on'));
    lit = [row, ...all(`.track [href="#${row.id}"]`)];
    lit.forEach((element) => element.classList.add('on'));
    const list = document.createElement('dl');
    [...row.cells].forEach((cell, at) => { if (cell.textContent) list.append(pair(heads[at], cell.textContent)); });
    const parts = row.dataset.p ? row.dataset.p.split(',') : [];
    parts.forEach((tokens, at) => { if (+tokens) list.append(pair(partNames[at], (+tokens).toLocaleString('en'))); });
    details.replaceChildren(list);
    details.hidden = false;
  };
  const hide = () => {
    details.hidden = true;
    lit.forEach((element) => element.classList.remove('on'));
    lit = [];
    if (cursor) cursor.hidden = true;
  };
  const cursor = document.querySelector('.cursor');
  const rowOf = (bar) => document.getElementById(bar.getAttribute('href').slice(1));
  const barAt = (event) => event.target.closest && event.target.closest('.track a');
  document.addEventListener('pointerover', (event) => { const bar = barAt(event); if (bar) show(rowOf(bar)); });
  document.addEventListener('focusin', (event) => { const bar = barAt(event); if (bar) show(rowOf(bar)); });
  document.addEventListener('pointerdown', (event) => { if (!barAt(event) && !event.target.closest('.series, #details')) hide(); });
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });
  // A finger shows the details first; a second tap goes to the row.
  let touched = null;
  document.addEventListener('click', (event) => {
    const bar = barAt(event);
    if (bar && event.pointerType === 'touch' && touched !== bar) event.preventDefault();
    touched = bar;
  });

  if (series) {
    const count = +series.dataset.n;
    const column = (event) => {
      const area = series.querySelector('.area').getBoundingClientRect();
      const at = Math.floor((event.clientX - area.left) / area.width * count);
      return at >= 0 && at < count ? { at, x: (at + .5) / count * area.width + area.left - series.getBoundingClientRect().left } : null;
    };
    series.addEventListener('pointermove', (event) => {
      const found = column(event);
      if (!found) return hide();
      cursor.hidden = false;
      cursor.style.left = `${found.x}px`;
      show(document.getElementById(`q${found.at}`));
    });
    series.addEventListener('pointerleave', hide);
    series.addEventListener('click', (event) => {
      const found = column(event);
      if (found && event.pointerType !== 'touch') location.hash = `q${found.at}`;
    });
  }

  // Zoom: tracks grow wider than their window, and the ruler gets the ticks that fit.
  const tracks = all('.track');
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400].map((s) => s * 1000)];
  const label = (ms, step) => {
    if (ms === 0) return '0';
    if (step < 1000 && ms < 1000) return `${ms} ms`;
    if (ms < 60000) return `${+(ms / 1000).toFixed(3)} s`;
    const seconds = ms / 1000 % 60;
    if (step < 1000) return `${Math.floor(ms / 60000)}:${seconds.toFixed(3).padStart(6, '0')}`;
    return ms % 60000 ? `${Math.floor(ms / 60000)}:${String(Math.floor(seconds)).padStart(2, '0')}` : `${ms / 60000} min`;
  };
  const rule = (track) => {
    const length = +track.dataset.ms;
    const least = length / Math.max(1, track.clientWidth / 90);
    const step = steps.find((known) => known >= least) || steps[steps.length - 1] * Math.ceil(least / steps[steps.length - 1]);
    all('.t', track).forEach((tick) => tick.remove());
    const ticks = document.createDocumentFragment();
    for (let at = 0; at <= length; at += step) {
      const tick = document.createElement('i');
      tick.className = 't';
      tick.style.left = `${at / length * 100}%`;
      tick.textContent = label(at, step);
      ticks.append(tick);
    }
    track.prepend(ticks);
  };
  const zoom = (track, factor, middle) => {
    const window = track.parentElement;
    const before = track.clientWidth || 1;
    const at = middle === undefined ? window.clientWidth / 2 : middle;
    const point = (window.scrollLeft + at) / before;
    const fit = Math.max(100, window.clientWidth - 36);
    const width = factor === 0 ? fit : Math.min(200000, Math.max(fit, before * factor));
    track.style.minWidth = '0';
    track.style.width = `${width}px`;
    window.scrollLeft = point * width - at;
    rule(track);
  };
  const ruleAll = () => tracks.filter((track) => track.offsetParent).forEach(rule);
  ruleAll();
  addEventListener('resize', () => requestAnimationFrame(ruleAll));
  all('details.run').forEach((run) => run.addEventListener('toggle', () => all('.track', run).forEach(rule)));
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-zoom]');
    if (!button) return;
    const factor = { in: 2, out: .5, fit: 0 }[button.dataset.zoom];
    tracks.filter((track) => track.offsetParent).forEach((track) => zoom(track, factor));
  });
  tracks.forEach((track) => {
    track.parentElement.addEventListener('wheel', (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(track, event.deltaY < 0 ? 1.25 : .8, event.clientX - track.parentElement.getBoundingClientRect().left);
    }, { passive: false });
  });

  // Keys: one stop for each run, arrows within it. Left and right go by time, up and down to the nearest bar of another lane.
  tracks.forEach((track) => {
    const bars = all('a', track);
    const left = (bar) => parseFloat(bar.style.left);
    const top = (bar) => parseFloat(bar.style.top);
    bars.sort((a, b) => left(a) - left(b));
    bars.forEach((bar, at) => { bar.tabIndex = at ? -1 : 0; });
    const go = (from, to) => {
      if (!to) return;
      from.tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
      to.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    };
    track.addEventListener('keydown', (event) => {
      const bar = event.target.closest('a');
      if (!bar) return;
      const at = bars.indexOf(bar);
      const side = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (event.key === '+' || event.key === '-') zoom(track, event.key === '+' ? 2 : .5);
      else if (event.key === 'ArrowRight') go(bar, bars[at + 1]);
      else if (event.key === 'ArrowLeft') go(bar, bars[at - 1]);
      else if (event.key === 'Home') go(bar, bars[0]);
      else if (event.key === 'End') go(bar, bars[bars.length - 1]);
      else if (side) {
        const beyond = bars.filter((other) => (top(other) - top(bar)) * side > 0);
        const lane = beyond.length ? Math.min(...beyond.map((other) => top(other) * side)) * side : NaN;
        const near = beyond.filter((other) => top(other) === lane);
        go(bar, near.sort((a, b) => Math.abs(left(a) - left(bar)) - Math.abs(left(b) - left(bar)))[0]);
      } else return;
      event.preventDefault();
    });
  });

  // A row that is gone to may be in a run that is closed, or hidden by a filter.
  const find = document.getElementById('find');
  addEventListener('hashchange', () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.tagName === 'DETAILS') target.open = true;
    if (target && target.tagName === 'TR' && !target.offsetParent) {
      document.getElementById('f-all').checked = true;
      find.value = '';
      all('tr.out', rows).forEach((row) => row.classList.remove('out'));
      target.scrollIntoView({ block: 'center' });
    }
  });
  if (find) {
    find.parentElement.hidden = false;
    find.addEventListener('input', () => {
      const words = find.value.toLowerCase();
      all('tbody tr:not(.of)', rows).forEach((row) => row.classList.toggle('out', !row.textContent.toLowerCase().includes(words)));
    });
  }
  all('.controls').forEach((controls) => { controls.hidden = false; });
})();
