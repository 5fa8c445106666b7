-- A waiting room as they are made of nginx and Redis: who waits is a sorted set, who is on the site another one, and
-- a script in Redis decides about each request. It runs in nginx for every request, before the site is asked.
-- The lines that differ from one run to another stand in front of it: port, script, before and after.

local function bulk(words)
  local out = { "*", #words, "\r\n" }
  for i = 1, #words do
    local w = tostring(words[i])
    out[#out + 1] = "$" .. #w .. "\r\n" .. w .. "\r\n"
  end
  return table.concat(out)
end

local visitor = ngx.var.cookie_visitor
if not visitor then
  visitor = string.format("%08x%08x%08x%08x", math.random(0, 0x7fffffff), math.random(0, 0x7fffffff), ngx.worker.pid(), ngx.now() * 1000 % 0x7fffffff)
  ngx.header["Set-Cookie"] = "visitor=" .. visitor .. "; Path=/; HttpOnly; SameSite=Lax"
end

local sock = ngx.socket.tcp()
sock:settimeout(1000)
local ok, err = sock:connect("127.0.0.1", port)
if not ok then
  ngx.log(ngx.ERR, err)
  return ngx.exit(503)
end
sock:send(bulk({ "EVALSHA", script, 0, visitor, ngx.now(), most }))
local line = sock:receive("*l") -- *2: ahead of the visitor, or -1; how many wait
if line ~= "*2" then
  ngx.log(ngx.ERR, line or "no answer")
  return ngx.exit(503)
end
local ahead = tonumber(sock:receive("*l"):sub(2))
local waiting = tonumber(sock:receive("*l"):sub(2))
sock:setkeepalive(60000, 1024)
if ahead < 0 then
  return -- on to the site
end
ngx.header["Content-Type"] = "text/html; charset=utf-8"
ngx.header["Cache-Control"] = "private, no-store"
ngx.header["Refresh"] = "20"
local said = before .. (ahead + 1) .. " of " .. waiting .. after
ngx.header["Content-Length"] = #said
ngx.print(said)
return ngx.exit(200)
