local visitor, now, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', 'active', '-inf', now - 300)
local inside = redis.call('ZSCORE', 'active', visitor)
if not inside and redis.call('ZCARD', 'active') < most then
  local first = redis.call('ZRANGE', 'waiting', 0, 0)[1]
  inside = not first or first == visitor
end
if inside then
  redis.call('ZADD', 'active', now, visitor)
  redis.call('ZREM', 'waiting', visitor)
  return { -1, 0 }
end
redis.call('ZADD', 'waiting', 'NX', now, visitor)
return { redis.call('ZRANK', 'waiting', visitor), redis.call('ZCARD', 'waiting') }
