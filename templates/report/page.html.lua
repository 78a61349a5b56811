-- page.html.lua: the whole report. Drawings are SVG, a million units (or the launches of a step) wide, stretched to the
-- page. gen/report.h says what the parameters are.
local html = import("lib/html.lua")
local t, num = html.text, html.number

-- Twelve colours: of tensor types, of values and of kernel families, by number.
local function colour(i)
  return "c" .. i % 12
end

local function kind_class(kind)
  local i = string.match(kind, "^t(%d+)$")
  return i and colour(tonumber(i)) or kind
end

-- Families in the order of their first launch, as numbers from 1.
local function family_numbers(step)
  local of = {}
  for i, f in ipairs(step.families) do
    of[f.family] = i
  end
  return of
end

local function meter_class(permille)
  return permille >= 700 and "near" or "easy"
end

-- What a program asks for to the byte; the rest of a pool is a bound for what others may take.
local function planned(p)
  local list, top = {}, 1
  for _, s in ipairs(p.segments) do
    if s.kind ~= "driver" and s.kind ~= "host" then
      list[#list + 1] = s
      top = math.max(top, s.at + s.size)
    end
  end
  return list, top
end

local function bound_words(bound)
  return ({ memory = "the memory's bandwidth", compute = "arithmetic", launch = "the launch itself", bytes = "bytes" })[bound]
end

%%template pool(p)
<div class="panel">
<h3 style="margin-top:0">${t(p.name)}: ${p.used_text}${p.spare == 0 and "" or " of " .. p.have_text}</h3>
% if p.too_small then
<p><b>This board's memory is too small for the program.</b></p>
% end
<svg class="bar" viewBox="0 0 1000000 1" preserveAspectRatio="none" role="img" aria-label="${t(p.name)}, to scale">
% for _, s in ipairs(p.segments) do
<rect class="${kind_class(s.kind)}" x="${s.at}" y="0" width="${s.size}" height="1"><title>${t(s.name)}: ${s.bytes_text}</title></rect>
% end
</svg>
<div class="ends"><span>0</span><span>${p.spare == 0 and "" or p.spare_text .. " left"}</span></div>
<table>
% for _, s in ipairs(p.segments) do
<tr><td><span class="swatch ${kind_class(s.kind)}"></span>${t(s.name)}</td><td class="n">${num(s.bytes)}</td><td class="n">${s.bytes_text}</td></tr>
% end
</table>
</div>
%%template life(p, scratch)
% local segments, top = planned(p)
<h3>${t(p.name)} over a step</h3>
<p class="soft small">Left to right the launches of a step, bottom to top the program's own bytes, to scale, without what is only a bound for others. All of it but the scratch is there for good.</p>
<svg class="tall" viewBox="0 0 ${scratch.launches} ${top}" preserveAspectRatio="none" role="img" aria-label="memory over the launches of a step">
<g transform="translate(0 ${top}) scale(1 -1)">
% for _, s in ipairs(segments) do
%   if s.kind == "scratch" then
%     for _, v in ipairs(scratch.values) do
<rect class="${colour(v.id)}" x="${v.first}" y="${v.pool_y}" width="${v.n}" height="${v.pool_h}"/>
%     end
%   else
<rect class="${kind_class(s.kind)}" x="0" y="${s.at}" width="${scratch.launches}" height="${s.size}"><title>${t(s.name)}: ${s.bytes_text}</title></rect>
%   end
% end
</g>
</svg>
<div class="ends"><span>launch 0</span><span>launch ${scratch.launches - 1}</span></div>
<h3>The scratch alone, ${scratch.bytes_text}</h3>
<p class="soft small">Each value lies where no other that lives at the same time does; the prover has seen that none overlap.</p>
<svg class="tall" viewBox="0 0 ${scratch.launches} 1000000" preserveAspectRatio="none" role="img" aria-label="scratch over the launches of a step">
<g transform="translate(0 1000000) scale(1 -1)">
% for _, v in ipairs(scratch.values) do
<rect class="${colour(v.id)}" x="${v.first}" y="${v.y}" width="${v.n}" height="${v.h}"><title>${t(v.name)}: ${v.bytes_text} at ${num(v.offset)}, launches ${v.first} to ${v.first + v.n - 1}</title></rect>
% end
</g>
</svg>
<div class="ends"><span>launch 0</span><span>launch ${scratch.launches - 1}</span></div>
%%template spans(step, of, wide)
<svg class="strip${wide and " wide" or ""}" viewBox="0 0 1000000 1" preserveAspectRatio="none" role="img" aria-label="launches of a step by kernel family">
% for _, s in ipairs(step.spans) do
<rect class="${colour(of[s.family])}" x="${s.at}" y="0" width="${s.width}" height="1"><title>${t(s.label)} · ${t(s.kernel)} · ${s.bytes_text} · ${num(s.ops)} operations${s.bound == "bytes" and "" or " · at least " .. s.time .. ", bound by " .. bound_words(s.bound)}</title></rect>
% end
</svg>
<svg class="thin${wide and " wide" or ""}" viewBox="0 0 1000000 1" preserveAspectRatio="none" role="img" aria-label="what bounds each launch">
% for _, s in ipairs(step.spans) do
<rect class="${s.bound}" x="${s.at}" y="0" width="${s.width}" height="1"/>
% end
</svg>
%%template step(s, timed)
% local of = family_numbers(s)
<div class="panel">
<h3 style="margin-top:0">${s.rows == 1 and "1 row: decode of one sequence" or num(s.rows) .. " rows: the largest step"}: ${timed and "at least " .. s.time or s.bytes_text}</h3>
${module.spans(s, of, false)}
<div class="ends"><span>${#s.spans} launches</span><span>${s.bytes_text} moved</span></div>
<details><summary>the same, stretched</summary><div class="scroll">
${module.spans(s, of, true)}
</div></details>
<table>
<tr><th>kernels</th><th class="n">launches</th><th class="n">bytes</th>${timed and "<th class=\"n\">at least</th>" or ""}<th class="n">share</th></tr>
% for i, f in ipairs(s.families) do
<tr><td><span class="swatch ${colour(i)}"></span>${t(f.family)}</td><td class="n">${f.launches}</td><td class="n">${f.bytes_text}</td>${timed and "<td class=\"n\">" .. f.time .. "</td>" or ""}<td class="n">${string.format("%d.%d %%", f.permille // 10, f.permille % 10)}</td></tr>
% end
</table>
</div>
%%template meter(m)
<span class="meter"><i class="${meter_class(m.permille)}" style="width:${m.permille // 10}.${m.permille % 10}%"></i></span>
%%template margin(k)
<tr><td class="name"><span class="mono">${t(k.kernel)}</span>
<details><summary>all ${#k.margins} limits</summary>
<table>
% for _, m in ipairs(k.margins) do
<tr><td>${t(m.name)}</td><td class="n">${num(m.value)} of ${num(m.limit)}</td><td>${module.meter(m)}</td></tr>
% end
</table></details></td>
<td class="n">${k.launches}</td><td class="n">${k.block}</td>
% if has(k, "tightest") then
<td>${t(k.tightest.name)}</td><td class="n">${num(k.tightest.value)} of ${num(k.tightest.limit)}</td><td>${module.meter(k.tightest)}</td></tr>
% else
<td>none</td><td></td><td></td></tr>
% end
%%template role(r, types)
<tr><td class="mono">${t(r.name)}</td><td><svg class="cells" width="${#r.cells * 15}" height="15" viewBox="0 0 ${#r.cells} 1" preserveAspectRatio="none">
% for i, c in ipairs(r.cells) do
%   if c > 0 then
<rect class="${colour(c)}" x="${i - 1}.06" y="0.06" width="0.88" height="0.88"><title>${r.in_layers and "layer " .. i - 1 .. ": " or ""}${t(types[c].type)}</title></rect>
%   end
% end
</svg></td></tr>
%%template
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>${t(model)} for ${t(target)}</title>
<style>
${include("report/style.css.lua", {})}
</style>
</head>
<body>
<main>
<h1>${t(model)}</h1>
<div class="soft">for <b>${t(target)}</b>${board ~= "" and ", times for the board " .. t(board) or ""} · ${t(architecture)} · context ${num(ctx)} × ${num(slots)} · chunk ${num(chunk)} (${t(chunk_why)}) · keys and values ${t(kv)}</div>
<div class="cards">
% for _, p in ipairs(pools) do
<div class="card"><b>${p.used_text}</b><span>${t(p.name)}, ${p.spare == 0 and "planned" or "planned of " .. p.have_text}</span></div>
% end
% if board ~= "" then
%   for _, s in ipairs(steps) do
<div class="card"><b>≥ ${s.time}</b><span>a step of ${num(s.rows)} row${s.rows == 1 and "" or "s"}</span></div>
%   end
% end
<div class="card"><b>${num(n_launches)}</b><span>launches of ${num(n_kernels)} kernels</span></div>
<div class="card"><b>${num(n_facts)}</b><span>facts proved, for every T from 1 to ${num(t_max)}</span></div>
</div>
<h2>Memory</h2>
% for _, p in ipairs(pools) do
${module.pool(p)}
% end
${module.life(pools[1], scratch)}
<h2>A step</h2>
% if board ~= "" then
<p class="soft small">Every launch from left to right, as wide as the least time that it takes: its bytes at the bandwidth of the ${t(board)}, its operations at that board's int8 rate, or 2 µs, whichever is longest. Nothing is lost to caches or to the kernels' own limits here, so a real step takes longer. Attention is counted at the full context. Below each strip: what bounds the launch.</p>
<div class="legend"><span><span class="swatch memory"></span>bandwidth</span><span><span class="swatch compute"></span>arithmetic</span><span><span class="swatch launch"></span>the launch itself</span></div>
% else
<p class="soft small">Every launch from left to right, as wide as the bytes that it moves: of this row no board is known whose bandwidth would give times. Attention is counted at the full context.</p>
% end
% for _, s in ipairs(steps) do
${module.step(s, board ~= "")}
% end
<h2>Margins to every limit</h2>
<p class="soft small">Beyond one of these a driver refuses a launch. Of each kernel the one that it comes nearest to, over all its launches and every number of rows; opened, all limits, also those of what an SM holds, which a kernel may fill.</p>
<div class="panel scroll">
<table>
<tr><th>kernel</th><th class="n">launches</th><th class="n">threads</th><th>nearest limit</th><th class="n">used</th><th></th></tr>
% for _, k in ipairs(margins) do
${module.margin(k)}
% end
</table>
</div>
<h2>Tensor types</h2>
<div class="legend">
% for i, y in ipairs(types) do
<span><span class="swatch ${colour(i)}"></span>${t(y.type)}: ${num(y.tensors)} tensors, ${y.bytes_text}</span>
% end
</div>
<div class="panel scroll">
<table class="roles">
% if n_layers > 0 then
<tr><td class="soft small">layers 0 to ${n_layers - 1}, left to right</td><td></td></tr>
% end
% for _, r in ipairs(roles) do
${module.role(r, types)}
% end
</table>
</div>
<h2>Facts proved</h2>
<p class="soft small">Proved again from the program's own files while this page was made. Of each kind the fact that comes nearest to its limit; many are equal to it by design, as a range that ends where its buffer ends.</p>
<div class="panel scroll">
<table>
<tr><th>kind</th><th class="n">facts</th><th>nearest</th><th>subject</th><th class="n">value</th><th class="n">limit</th></tr>
% for _, f in ipairs(facts) do
<tr><td>${t(f.kind)}</td><td class="n">${num(f.facts)}</td><td class="name">${t(f.of)}</td><td class="name mono">${t(f.subject)}</td><td class="n">${num(f.value)}</td><td class="n">${num(f.limit)}</td></tr>
% end
</table>
</div>
<footer>Made by lagen report from manifest.json, launches.json and memory.json. C compiler: ${t(compiler)}${cuda_compiler ~= "" and "; CUDA compiler: " .. t(cuda_compiler) or ""}. docs/proof.md of lagen says what these proofs assume.</footer>
</main>
</body>
</html>
