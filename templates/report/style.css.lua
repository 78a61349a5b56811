-- style.css.lua: the look of the report, light and dark.
%%template
:root { color-scheme: light dark; --bg: #fbfbf9; --panel: #ffffff; --ink: #1d2125; --soft: #5d666f; --line: #dfe2e6; --empty: #eceef1;
  --kv: #2f7fd1; --window: #7db7ec; --scratch: #d98a1f; --io: #8a63c4; --driver: #9aa3ab; --host: #b9a58a; --rest: #c8cdd2;
  --memory: #2f7fd1; --compute: #cf5a36; --launch: #a9b0b7; --bytes: #2f7fd1; --ok: #2e8b57; --near: #c98a10;
  --c1: #3f8f5f; --c2: #86c06c; --c3: #c7b13a; --c4: #d98a1f; --c5: #cf5a36; --c6: #b5447c; --c7: #8a63c4; --c8: #5a6fd0;
  --c9: #2f7fd1; --c10: #2aa3a8; --c11: #7c8a52; --c0: #8d7560; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #14171a; --panel: #1c2024; --ink: #e7eaed; --soft: #9aa5b0; --line: #323940; --empty: #272c32;
    --kv: #4d9de8; --window: #2f6496; --scratch: #e0a045; --io: #a486da; --driver: #6b757e; --host: #85765f; --rest: #4a525a;
    --memory: #4d9de8; --compute: #e57a55; --launch: #5d666f; --bytes: #4d9de8; --ok: #4fb37c; --near: #e0a63a;
    --c1: #55ab78; --c2: #79b862; --c3: #cdb94e; --c4: #e0a045; --c5: #e57a55; --c6: #d0689b; --c7: #a486da; --c8: #7f91e6;
    --c9: #4d9de8; --c10: #45bcc1; --c11: #97a56b; --c0: #a8917b; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.75rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .35rem; font-weight: 600; }
p { margin: .25rem 0 .75rem; max-width: 52rem; }
.soft { color: var(--soft); }
.small { font-size: .85rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.25rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem; }
.card b { display: block; font-size: 1.35rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .85rem; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1rem; margin: .6rem 0; }
.scroll { overflow-x: auto; }
svg { display: block; width: 100%; background: var(--empty); border-radius: 5px; }
svg.bar { height: 40px; }
svg.tall { height: 300px; }
svg.strip { height: 34px; border-radius: 0; }
svg.wide { width: 4200px; }
svg.thin { height: 10px; border-radius: 0; }
svg.cells { background: none; height: 15px; width: auto; border-radius: 0; }
rect:hover { filter: brightness(1.25); }
.ends { display: flex; justify-content: space-between; gap: 1rem; color: var(--soft); font-size: .8rem; margin: .2rem 0 .6rem; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .85rem; margin: .5rem 0; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 3px; margin-right: .45em; vertical-align: -.05em; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--line); padding: .3rem .7rem .3rem 0; vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); padding: .3rem .7rem .3rem 0; vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.name { overflow-wrap: anywhere; min-width: 11rem; }
table.roles td { padding: .08rem .8rem .08rem 0; border: 0; white-space: nowrap; }
.mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .82rem; }
.meter { display: block; position: relative; height: .55rem; min-width: 7rem; background: var(--empty); border-radius: 3px; overflow: hidden; margin-top: .4rem; }
.meter i { position: absolute; inset: 0 auto 0 0; background: var(--ok); }
.meter i.near { background: var(--near); }
summary { cursor: pointer; color: var(--soft); font-size: .85rem; }
details table { margin: .3rem 0 .6rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; color: var(--soft); font-size: .85rem; }
% for _, kind in ipairs({ "kv", "window", "scratch", "io", "driver", "host", "rest", "memory", "compute", "launch", "bytes" }) do
.${kind} { fill: var(--${kind}); background: var(--${kind}); }
% end
% for i = 0, 11 do
.c${i} { fill: var(--c${i}); background: var(--c${i}); }
% end
