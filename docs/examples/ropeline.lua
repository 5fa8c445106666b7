-- Asks ropeline whether a request may go on: "http-request lua.ropeline URL".
--
-- URL is where nodes are asked, http://HOST:PORT/forward, with HOST an address. Of what
-- they say, this
--   - hands the answer to the visitor if the visitor has to wait; nothing behind
--     the action is done then;
--   - else puts the proof of admission into the request, and the Set-Cookie field that
--     the visitor shall get into the variable txn.ropeline_cookie;
--   - sets txn.ropeline_down if there was no answer, or if something went wrong here.
--
-- A request with more than some 90 fields gets 431.
--
-- The answer has to fit into one buffer of HAProxy, with its header; where a waiting page
-- is longer than some 14 KB, raise tune.bufsize, or visitors get 500 in its place.
--
-- HAProxy 2.6 or later, built with Lua; nothing else is needed.

-- Milliseconds. More than the "timeout server" of the section that URL leads to: when
-- this one is over, HAProxy asks three times more by itself.
local timeout = 5000

local proof = "ropeline-proof"

-- Fields that a question has at most. HAProxy itself takes 100 of a visitor
-- (tune.http.maxhdr), but core.httpclient ends the process on some numbers near that.
local fields_max = 90

-- Fields that are about the connection or the length of a message, and those that say
-- where a request comes from, which are set anew.
local dropped = {
  ["connection"] = true, ["keep-alive"] = true, ["te"] = true, ["trailer"] = true,
  ["transfer-encoding"] = true, ["upgrade"] = true, ["expect"] = true, ["host"] = true,
  ["content-length"] = true, ["forwarded"] = true, ["x-forwarded-for"] = true,
  ["x-forwarded-host"] = true, ["x-forwarded-method"] = true,
  ["x-forwarded-proto"] = true, ["x-forwarded-uri"] = true,
}

-- Returns the fields of the question, and nothing if they are too many.
local function question(txn)
  local fields = {}
  local count = 5 -- those that are added here
  for name, values in pairs(txn.http:req_get_headers()) do
    if not dropped[name] then
      local list = {}
      for _, value in pairs(values) do
        list[#list + 1] = value
        count = count + 1
      end
      fields[name] = list
    end
  end
  if count > fields_max then
    return nil
  end
  -- What browsers ask before a request of a page of another site has no body.
  local length = txn.sf:req_fhdr("content-length")
  if length ~= "" and length ~= "0" or txn.sf:req_fhdr("transfer-encoding") ~= "" then
    fields["access-control-request-method"] = nil
  end
  fields["x-forwarded-method"] = { txn.sf:method() }
  fields["x-forwarded-uri"] = { txn.sf:pathq() }
  fields["x-forwarded-host"] = { txn.sf:req_fhdr("host") }
  fields["x-forwarded-proto"] = { txn.sf:ssl_fc() == "1" and "https" or "http" }
  fields["x-forwarded-for"] = { txn.sf:src() }
  return fields
end

local function refuse(txn)
  local reply = txn:reply({ status = 431 })
  reply:add_header("content-type", "text/plain")
  reply:add_header("cache-control", "no-store")
  reply:add_header("ropeline-state", "refused")
  if txn.sf:method() ~= "HEAD" then
    reply:set_body("Too many header fields.\n")
  end
  txn:done(reply)
end

local function first(values)
  if values then
    for _, value in pairs(values) do
      return value
    end
  end
end

local function hand_over(txn, answer)
  local reply = txn:reply({ status = answer.status })
  for name, values in pairs(answer.headers) do
    if not dropped[name] then
      for _, value in pairs(values) do
        reply:add_header(name, value)
      end
    end
  end
  if txn.sf:method() ~= "HEAD" then
    reply:set_body(answer.body)
  end
  txn:done(reply)
end

core.register_action("ropeline", { "http-req" }, function(txn, url)
  -- Until there is a verdict: HAProxy goes on with its rules when a script fails.
  txn:set_var("txn.ropeline_down", true)
  txn.http:req_del_header(proof)
  local fields = question(txn)
  if not fields then
    return refuse(txn)
  end
  local answer = core.httpclient():get({ url = url, headers = fields, timeout = timeout })
  local status = answer and answer.status or 0
  if status >= 200 and status < 300 then
    local token = first(answer.headers[proof])
    if token then
      txn.http:req_set_header(proof, token)
    end
    local cookie = first(answer.headers["set-cookie"])
    if cookie then
      txn:set_var("txn.ropeline_cookie", cookie)
    end
    txn:unset_var("txn.ropeline_down")
  elseif status >= 400 and status < 500 then
    hand_over(txn, answer)
  end
end, 1)
