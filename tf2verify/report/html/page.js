// Draws cases and tables when they are looked at. What a record says becomes text, never HTML.
(function () {
  'use strict';

  const PAGE_ROWS = 25;
  const MOST_CHOICES = 40;
  const [EXACT, STEP] = [16, 1.2];
  const LETTERS = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
  const find = (selector, within) => (within || document).querySelector(selector);
  const all = (selector, within) => [...(within || document).querySelectorAll(selector)];

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith('on')) {
        made.addEventListener(key.slice(2), value);
      } else if (value !== false && value !== null) {
        made.setAttribute(key, value === true ? '' : value);
      }
    }
    made.append(...children);
    return made;
  }

  // ---- tables ----

  async function unpack(identifier) {
    const text = find(`#data-${identifier}`).textContent;
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Response(plain).json();
  }

  const isText = (column) => column.kind !== 'number' && column.kind !== 'ulps';

  function cellText(column, row, words) {
    const value = column.values[row];
    return isText(column) ? words[value] : value === null ? '' : String(value);
  }

  function numberOf(column, row) {
    const value = column.values[row];
    if (value === null) return NaN;
    if (value === 'inf') return Infinity;
    if (value === '-inf') return -Infinity;
    return Number(value);
  }

  function shownNumber(value) {
    if (value === null || typeof value === 'string') return value === null ? '' : value;
    if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
    const short = Number(value.toPrecision(3));
    const size = Math.abs(short);
    return size >= 1e-3 && size < 1e6 ? String(short) : short.toExponential();
  }

  function power(exponent) {
    if (exponent <= 14) return String(2 ** exponent - 1);
    return '2' + String(exponent).replace(/\d/g, (digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[digit]);
  }

  // Of the elements looked at, how many are how far apart; a letter tells a count nearly.
  function ulpsCounts(letters) {
    return [...letters].map((letter) => {
      const level = LETTERS.indexOf(letter);
      return level <= EXACT ? level : EXACT * STEP ** (level - EXACT);
    });
  }

  function ulpsText(counts) {
    const all = counts.reduce((sum, count) => sum + count, 0);
    const said = counts.map((count, n) => [count, n]).filter(([count]) => count > 0).map(
      ([count, n]) => {
        const from = n > 14 ? power(n - 1) : String(2 ** (n - 1));
        const range = n === 0 ? 'equal' : n === 1 ? '1 apart' : `${from} to ${power(n)} apart`;
        const share = 100 * count / all;
        return `${range}: ${share < 1 ? 'under 1' : Math.round(share)} %`;
      });
    return `about ${said.join(', ')}`;
  }

  // A bar for each power of two, as high as the logarithm of its count.
  function ulpsCell(text) {
    const cell = element('td', {class: 'ulps'});
    if (!text) return cell;
    const counts = ulpsCounts(text);
    const said = ulpsText(counts);
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    const width = Math.max(counts.length, 12);
    svg.setAttribute('viewBox', `0 0 ${width} 10`);
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('aria-hidden', 'true');
    const top = Math.log1p(Math.max(...counts));
    counts.forEach((count, n) => {
      if (!count) return;
      const height = Math.max(1, 10 * Math.log1p(count) / top);
      const bar = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      bar.setAttribute('x', n + 0.1);
      bar.setAttribute('y', 10 - height);
      bar.setAttribute('width', 0.8);
      bar.setAttribute('height', height);
      bar.setAttribute('fill', n === 0 ? 'var(--pass-ink)' : 'var(--tf1)');
      svg.append(bar);
    });
    cell.setAttribute('title', said);
    const last = counts.length - 1;
    cell.append(svg, element('span', {'aria-hidden': 'true'}, last ? `≤ ${power(last)}` : '0'));
    cell.append(element('span', {class: 'hidden'}, said));
    return cell;
  }

  function textCell(text, code) {
    if (!code) return element('td', {class: text.length > 32 ? 'long' : 'whole'}, text);
    const cell = element('td', {class: 'code'});
    for (const part of text.split(/(?<=[/,])/)) cell.append(part, element('wbr'));
    return cell;
  }

  class Table {
    constructor(place, data, label, words) {
      this.words = words;
      this.place = place;
      this.data = data;
      this.label = label;
      this.page = 0;
      this.order = data.order;
      this.down = true;
      this.choices = new Map();
      this.needle = '';
      this.number = Table.made = (Table.made || 0) + 1;
      this.rows = [...Array(data.rows).keys()];
      place.replaceChildren();
      if (place.dataset.closed) {
        const button = element('button', {type: 'button', 'aria-expanded': 'false',
          'aria-controls': `table-${this.number}`}, `Show the numbers (${data.rows} rows)`);
        const body = element('div', {id: `table-${this.number}`, hidden: true});
        button.addEventListener('click', () => {
          body.hidden = !body.hidden;
          button.setAttribute('aria-expanded', String(!body.hidden));
        });
        place.append(button, body);
        this.place = body;
      }
      this.build();
      this.choose();
    }

    build() {
      const controls = element('div', {class: 'table-controls'});
      if (this.data.rows > 10) {
        controls.append(element('label', {}, 'Contains ', element('input', {type: 'search',
          oninput: (event) => { this.needle = event.target.value.toLowerCase(); this.choose(); }})));
        this.data.columns.forEach((column, position) => this.addChoice(controls, column, position));
      }
      this.head = element('tr');
      this.body = element('tbody');
      this.pager = element('div', {class: 'pager'});
      const caption = element('caption', {}, this.data.caption);
      const table = element('table', {}, caption, element('thead', {}, this.head), this.body);
      const region = element('div', {class: 'scroll', role: 'region', tabindex: '0',
        'aria-label': `${this.data.caption}, ${this.label}`}, table);
      if (controls.childNodes.length) this.place.append(controls);
      if (this.data.same.length) {
        const said = this.data.same.map(([head, value]) => `${head}: ${value}`).join('; ');
        this.place.append(element('p', {class: 'note'}, `In every row: ${said}.`));
      }
      this.place.append(region, this.pager);
    }

    addChoice(controls, column, position) {
      if (!column.choose) return;
      const counts = new Map();
      for (const value of column.values) counts.set(value, (counts.get(value) || 0) + 1);
      if (counts.size < 2 || counts.size > MOST_CHOICES) return;
      const select = element('select', {onchange: (event) => {
        this.choices.set(position, event.target.value);
        this.choose();
      }}, element('option', {value: ''}, `all (${this.data.rows})`));
      for (const [value, count] of counts) {
        const text = `${this.words[value] || '(nothing)'} (${count})`;
        select.append(element('option', {value: String(value)}, text));
      }
      controls.append(element('label', {}, `${column.head} `, select));
    }

    text(column, row) {
      return cellText(column, row, this.words);
    }

    choose() {
      const {columns, rows} = this.data;
      const chosen = [...this.choices].filter(([, value]) => value !== '');
      const matches = (row) => chosen.every(([c, value]) => columns[c].values[row] === Number(value))
        && (!this.needle || columns.some((column) => column.kind !== 'ulps'
          && this.text(column, row).toLowerCase().includes(this.needle)));
      this.rows = [...Array(rows).keys()].filter(matches);
      this.sort();
    }

    sort() {
      if (this.order >= 0) {
        const column = this.data.columns[this.order];
        const sign = this.down ? -1 : 1;
        const key = column.kind === 'number' ? (row) => numberOf(column, row)
          : column.kind === 'ulps' ? (row) => column.values[row].length
            : (row) => this.text(column, row);
        const keys = new Map(this.rows.map((row) => [row, key(row)]));
        this.rows.sort((one, other) => {
          const [a, b] = [keys.get(one), keys.get(other)];
          if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
          return sign * (a < b ? -1 : a > b ? 1 : 0) || one - other;
        });
      } else {
        this.rows.sort((one, other) => one - other);
      }
      this.page = 0;
      this.draw();
    }

    draw() {
      this.drawHead();
      const start = this.page * PAGE_ROWS;
      const shown = this.rows.slice(start, start + PAGE_ROWS);
      this.body.replaceChildren(...shown.map((row) => this.row(row)));
      const count = this.rows.length;
      const all = this.data.rows;
      const of = `${count === all ? '' : `${count} of `}${all} ${all === 1 ? 'row' : 'rows'}`;
      const text = count > PAGE_ROWS ? `Rows ${start + 1} to ${start + shown.length} of ${of}` : of;
      const turn = (step, name) => element('button', {type: 'button',
        disabled: this.page + step < 0 || (this.page + step) * PAGE_ROWS >= count,
        onclick: () => { this.page += step; this.draw(); this.refocus(name); }}, name);
      this.pager.replaceChildren(element('span', {class: 'note', role: 'status'}, text));
      if (count > PAGE_ROWS) this.pager.prepend(turn(-1, 'Previous'), turn(1, 'Next'));
    }

    refocus(name) {
      const again = all('button', this.pager);
      (again.find((button) => button.textContent === name && !button.disabled)
        || again.find((button) => !button.disabled)).focus();
    }

    drawHead() {
      const had = document.activeElement && this.head.contains(document.activeElement)
        ? all('button', this.head).indexOf(document.activeElement) : -1;
      this.head.replaceChildren(...this.data.columns.map((column, position) => {
        const sorted = this.order === position;
        const state = sorted ? (this.down ? 'descending' : 'ascending') : false;
        const sign = sorted ? (this.down ? ' ▾' : ' ▴') : '';
        const button = element('button', {type: 'button', onclick: () => {
          this.down = sorted ? !this.down : column.kind === 'number';
          this.order = position;
          this.sort();
        }}, column.head, element('span', {'aria-hidden': 'true'}, sign));
        return element('th', {scope: 'col', 'aria-sort': state,
          class: column.kind === 'number' ? 'number' : false}, button);
      }));
      if (had >= 0) all('button', this.head)[had].focus();
    }

    row(row) {
      const made = element('tr');
      for (const column of this.data.columns) {
        if (column.kind === 'number') {
          made.append(element('td', {class: 'number'}, shownNumber(column.values[row])));
        } else if (column.kind === 'ulps') {
          made.append(ulpsCell(column.values[row]));
        } else {
          const text = this.text(column, row);
          made.append(textCell(text, column.kind === 'code'));
          if (column.kind === 'mark' && text && text !== 'renamed') { // a name is no warning
            made.className = text === 'failed' || text.includes('only in') ? 'marked-bad' : 'marked';
          }
        }
      }
      return made;
    }
  }

  // ---- cases ----

  const rows = all('#overview tbody tr');
  const details = find('#details');
  const rowOf = (identifier) => rows.find((row) => row.dataset.case === identifier);
  const places = new Map(rows.map((row, position) => [row.dataset.case, position]));

  function mark(identifier, open) {
    const row = rowOf(identifier);
    row.classList.toggle('open', open);
    find('.opener', row).setAttribute('aria-expanded', String(open));
    find('#nothing-open').hidden = Boolean(find('article.case', details));
  }

  function openCase(identifier, focused) {
    let article = document.getElementById(identifier);
    if (!article) {
      const copy = document.importNode(find(`#template-${identifier}`).content, true);
      article = find('article', copy);
      const behind = all('article.case', details)
        .find((other) => places.get(other.id) > places.get(identifier));
      details.insertBefore(copy, behind || null);
      find('.closer', article).addEventListener('click', () => closeCase(identifier, true));
      mark(identifier, true);
      const name = rowOf(identifier).dataset.name;
      article.ready = unpack(identifier).then((tables) => {
        for (const place of all('.packed', article)) {
          new Table(place, tables[place.dataset.table], name, tables['']);
        }
        article.dataset.ready = '1';
      }).catch((error) => {
        for (const place of all('.packed', article)) {
          place.append(element('p', {class: 'warning'},
            `The table could not be drawn (${error}): this browser is too old for it.`));
        }
      });
    }
    if (focused) {
      const heading = find('h3', article);
      heading.focus({preventScroll: true});
      article.scrollIntoView({block: 'start'});
    }
    return article;
  }

  function closeCase(identifier, focused) {
    const article = document.getElementById(identifier);
    if (article) article.remove();
    mark(identifier, false);
    if (focused) find('.opener', rowOf(identifier)).focus();
  }

  for (const row of rows) {
    find('.opener', row).addEventListener('click', () => {
      if (document.getElementById(row.dataset.case)) closeCase(row.dataset.case, false);
      else openCase(row.dataset.case, true);
    });
  }
  for (const link of all('.to-case')) {
    link.addEventListener('click', (event) => {
      event.preventDefault();
      history.replaceState(null, '', link.hash);
      openCase(link.hash.slice(1), true);
    });
  }

  // ---- overview ----

  const WRONG = ['FAILED', 'ERROR', 'INCONCLUSIVE'];
  const needle = find('#needle');
  const order = find('#order');
  const checks = all('input[name=status]');

  function showRows() {
    const wanted = new Set(checks.filter((check) => check.checked).map((check) => check.value));
    const text = needle.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !wanted.has(row.dataset.status)
        || !row.dataset.words.toLowerCase().includes(text);
      shown += !row.hidden;
    }
    find('#shown').textContent = `${shown} of ${rows.length} cases shown`;
  }

  const COMPARE = {
    run: (one, other) => places.get(one.dataset.case) - places.get(other.dataset.case),
    severity: (one, other) => other.dataset.severity - one.dataset.severity,
    name: (one, other) => one.dataset.name.localeCompare(other.dataset.name),
    seconds: (one, other) => other.dataset.seconds - one.dataset.seconds,
  };

  function sortRows() {
    const compare = COMPARE[order.value];
    const sorted = [...rows].sort((one, other) => compare(one, other) || COMPARE.run(one, other));
    find('#overview tbody').append(...sorted);
  }

  for (const check of checks) check.addEventListener('change', showRows);
  needle.addEventListener('input', showRows);
  order.addEventListener('change', sortRows);
  find('#controls').addEventListener('submit', (event) => event.preventDefault());
  find('#open-wrong').addEventListener('click', () => {
    for (const row of rows) {
      if (!row.hidden && WRONG.includes(row.dataset.status)) openCase(row.dataset.case, false);
    }
  });
  find('#close-all').addEventListener('click', () => {
    for (const article of all('article.case', details)) closeCase(article.id, false);
  });
  const later = all('.wrong .later');
  if (later.length) {
    for (const item of later) item.hidden = true;
    const more = element('button', {type: 'button', onclick: () => {
      for (const item of later) item.hidden = false;
      more.remove();
    }}, `Show ${later.length} more`);
    find('.wrong').after(more);
  }

  find('#controls').hidden = false;
  showRows();
  const named = location.hash.slice(1);
  const first = rows.find((row) => WRONG.includes(row.dataset.status));
  function openNamed() {
    const named = location.hash.slice(1);
    if (places.has(named)) openCase(named, true);
  }
  window.addEventListener('hashchange', openNamed);
  // The browser sets the focus once more, when it has loaded the page.
  window.addEventListener('load', () => setTimeout(openNamed));
  if (places.has(named)) openCase(named, false);
  else if (first) openCase(first.dataset.case, false);
  else if (rows.length === 1) openCase(rows[0].dataset.case, false);
})();
