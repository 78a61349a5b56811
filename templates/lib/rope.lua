-- rope.lua -- frequencies of rotary position embedding from a model's keys.
--
-- frequencies(p) returns freq (radians per position, one per pair) and the magnitude. p: { n_rot, base,
-- factors (numbers or nil), type, factor, mscale, for YaRN original_ctx, beta_fast, beta_slow }.
-- Formulas: plain theta_i = base^(-2i/n_rot) / factors[i]; linear: theta / factor; YaRN (Peng et al.,
-- arXiv 2309.00071): interpolation by a ramp between the pairs that turn beta_fast and beta_slow times in
-- the original context.

local real = import("lib/real.lua")
local M = {}

-- A program multiplies with magnitudes in f32, where the smallest numbers are 0.
local LEAST_MAGNITUDE, MOST_MAGNITUDE = 1e-6, 1e6
local MOST_BETA = 1e6

local function clamp01(x)
  return math.max(0.0, math.min(1.0, x))
end

-- The pair index (fractional) that turns `beta` times in the original context.
local function pair_of_turns(p, beta)
  return p.n_rot * real.log(p.original_ctx / (2 * real.pi * beta)) / (2 * real.log(p.base))
end

local function yarn_ramp(p)
  local low = math.max(0.0, math.floor(pair_of_turns(p, p.beta_fast)) + 0.0)
  local high = math.min(p.n_rot - 1.0, math.ceil(pair_of_turns(p, p.beta_slow)) + 0.0)
  return function(i)
    return 1.0 - clamp01((i - low) / math.max(0.001, high - low))
  end
end

function M.frequencies(p)
  local freq = {}
  local ramp = p.type == "yarn" and yarn_ramp(p) or nil
  for i = 0, p.n_rot // 2 - 1 do
    local theta = real.pow(p.base, -2.0 * i / p.n_rot)
    if p.factors then
      local f = p.factors[i + 1]
      if not (f > 0 and f < math.huge) then
        fail("rotary frequency divisor " .. i .. " is " .. string.format("%g", f) .. "; it must be positive")
      end
      theta = theta / f
    end
    local scaled = theta / p.factor
    if ramp then
      scaled = scaled * (1.0 - ramp(i)) + theta * ramp(i)
    end
    freq[i + 1] = scaled
  end
  return freq, p.mscale
end

-- The magnitude's and the ramp's sources, as --rope-mscale and --rope-beta name them: what they mean for p,
-- whose keys have been read. Readers of these files disagree about both: llama.cpp multiplies the formula with
-- attn_factor and has 32 and 1 whatever the file says; transformers takes the file's factor alone and its betas.
local function magnitude(g, prefix, p, asked)
  local how = g.options.rope_mscale
  if how == "formula" then
    local m = 1.0 + 0.1 * real.log(p.factor)
    if m <= 0 then
      fail("key '" .. prefix .. "rope.scaling.factor' is " .. p.factor .. ": its magnitude 1 + 0.1 ln(factor) is not above 0")
    end
    return m * p.attn_factor
  end
  if how == "key" then
    return g:number(prefix .. "rope.scaling.yarn_attn_factor", LEAST_MAGNITUDE, MOST_MAGNITUDE, p.attn_factor)
  end
  return asked.mscale
end

local function betas(g, prefix, asked)
  local how = g.options.rope_beta
  if how == "fixed" then
    return 32.0, 1.0
  end
  if how == "key" then
    local fast = g:number(prefix .. "rope.scaling.yarn_beta_fast", 0, MOST_BETA)
    local slow = g:number(prefix .. "rope.scaling.yarn_beta_slow", 0, MOST_BETA)
    if not (fast > slow and slow > 0) then
      fail(string.format("keys '%srope.scaling.yarn_beta_fast' and '%srope.scaling.yarn_beta_slow' are %g and %g; "
        .. "the first must be above the second, and that above 0", prefix, prefix, fast, slow))
    end
    return fast, slow
  end
  return asked.fast, asked.slow
end

-- The numbers that stand in these options in place of words. What is neither is wrong for models without YaRN too.
local function numbers_asked(g)
  local how, pair, asked = g.options.rope_mscale, g.options.rope_beta, {}
  if how ~= "formula" and how ~= "key" then
    local v = tonumber(how)
    if not (v and v >= LEAST_MAGNITUDE and v <= MOST_MAGNITUDE) then
      wrong_option("--rope-mscale: '" .. how .. "' is neither formula nor key nor a number from 1e-6 to 1e6")
    end
    asked.mscale = v + 0.0
  end
  if pair ~= "fixed" and pair ~= "key" then
    local fast, slow = string.match(pair, "^([%d.]+),([%d.]+)$")
    fast, slow = fast and tonumber(fast), slow and tonumber(slow)
    if not (fast and slow and fast > slow and slow > 0 and fast <= MOST_BETA) then
      wrong_option("--rope-beta: '" .. pair .. "' is neither fixed nor key nor FAST,SLOW with 1e6 >= FAST > SLOW > 0")
    end
    asked.fast, asked.slow = fast + 0.0, slow + 0.0
  end
  return asked
end

-- Reads the standard keys (prefix "<arch>.") of builder g and the options that say how to; notes what is chosen.
function M.from_keys(g, prefix, n_rot, factors)
  local asked = numbers_asked(g)
  local kind = g:key(prefix .. "rope.scaling.type", "string", "linear")
  if kind ~= "none" and kind ~= "linear" and kind ~= "yarn" then
    fail("key '" .. prefix .. "rope.scaling.type' is '" .. kind .. "'; lagen knows none, linear, yarn")
  end
  local old = g:number(prefix .. "rope.scale_linear", 0, 1e9, 1.0)
  local factor = g:number(prefix .. "rope.scaling.factor", 0, 1e9, old)
  if kind == "none" or factor == 0 then
    factor = 1.0
  end
  local ctx = g:int(prefix .. "context_length", 1, 1 << 30)
  local p = {
    n_rot = n_rot,
    base = g:number(prefix .. "rope.freq_base", 1, 1e12, 10000.0),
    factors = factors,
    type = kind,
    factor = factor,
    original_ctx = g:int(prefix .. "rope.scaling.original_context_length", 1, 1 << 30, ctx),
    attn_factor = g:number(prefix .. "rope.scaling.attn_factor", LEAST_MAGNITUDE, MOST_MAGNITUDE, 1.0),
  }
  p.mscale = p.attn_factor
  if kind == "yarn" and p.base == 1 then
    fail("key '" .. prefix .. "rope.freq_base' is 1: all pairs turn alike, and YaRN has none to choose; it must be above 1")
  end
  if kind == "yarn" then
    p.mscale = magnitude(g, prefix, p, asked)
    p.beta_fast, p.beta_slow = betas(g, prefix, asked)
    g:note("rope", string.format("yarn: factor %g of %d positions, magnitude %.7g (%s), betas %g %g (%s)", factor,
      p.original_ctx, p.mscale, g.options.rope_mscale, p.beta_fast, p.beta_slow, g.options.rope_beta))
  elseif g.options.rope_mscale ~= "formula" or g.options.rope_beta ~= "fixed" then
    fail("--rope-mscale and --rope-beta say how YaRN is read; this model's rope.scaling.type is " .. kind)
  end
  return M.frequencies(p)
end

return M
