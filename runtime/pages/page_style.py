"""How pages that people keep look, light and dark, on a desk and on a phone."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1b2330; --soft: #5b6675;
  --line: #dde2e8; --good: #1a7f4b; --bad: #b42318; --unsure: #a15c00; --wait: #2f6fbd;
  --calm: #8fa3b8; }
@media (prefers-color-scheme: dark) { :root { --page: #12161c; --card: #1b212a; --text: #e6eaf0;
  --soft: #98a4b3; --line: #303946; --good: #4cc38a; --bad: #ff7b6e; --unsure: #f0b35b;
  --wait: #78aef0; --calm: #66788c; } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
body, code { overflow-wrap: anywhere }
main { max-width: 82rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
section, header { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.4rem; margin-bottom: 1.1rem }
h1 { margin: 0; font-size: 1.9rem } h2 { margin: 0 0 .6rem; font-size: 1.1rem }
h3 { margin: 1rem 0 .2rem; font-size: .95rem }
p { margin: .4rem 0 } .soft { color: var(--soft) }
header.clean { border-left: 8px solid var(--good) } .clean h1 { color: var(--good) }
header.findings { border-left: 8px solid var(--bad) } .findings h1 { color: var(--bad) }
header.unknown { border-left: 8px solid var(--unsure) } .unknown h1 { color: var(--unsure) }
.old { color: var(--unsure); font-weight: 600 }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top }
th { color: var(--soft); font-weight: 600 }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td, th, td code { overflow-wrap: normal }
td.name { min-width: 7rem; max-width: 18rem; overflow-wrap: anywhere }
td.why { min-width: 14rem; overflow-wrap: anywhere } td.time, td code { white-space: nowrap }
summary { cursor: pointer; color: var(--soft); padding: .3rem 0 }
.night { display: inline-block; width: 1.1rem; height: 1.1rem; border-radius: 3px;
  margin: 0 .2rem .2rem 0; color: var(--card); font: 700 .8rem/1.1rem sans-serif;
  text-align: center; vertical-align: top }
.night.clean { background: var(--good) } .night.findings { background: var(--bad) }
.night.unknown, .night.unreadable { background: var(--unsure) }
code { font: .88em ui-monospace, monospace }
a { color: var(--wait) }
svg { display: block; width: 100%; height: auto }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif }
.log { fill: var(--calm) } .gone { fill: none; stroke: var(--calm); stroke-dasharray: 3 3 }
.wait { fill: var(--wait) } .late, .mark { fill: var(--bad) } .unsure { fill: var(--unsure) }
.key-of span { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px;
  margin: 0 .35rem 0 1rem; vertical-align: -1px }
@media (max-width: 40rem) {
  main { padding: .6rem .5rem 2rem } section, header { padding: .8rem }
  svg text { font-size: 18px }
  .cards tr:first-child, .cards td:empty { display: none }
  .cards tr { display: block; border-bottom: 1px solid var(--line); padding: .5rem 0 }
  .cards td { display: block; border: 0; padding: .05rem 0; text-align: left; max-width: none }
  .cards td::before { content: attr(data-name) ": "; color: var(--soft) } }
"""
