-- A fence in Redis: redis-cli --eval fence.lua report:q3 , "$TOKEN" "$BODY"
--
-- TOKEN is the 19 digits of Token.Text(). They compare as text. As numbers sixteen tokens in a row
-- are one, and text of other lengths has "9" above "10": neither refuses an older holder.
local token, newest = ARGV[1], redis.call('HGET', KEYS[1], 'token')
if #token ~= 19 or token:find('%D') then
  return redis.error_reply('ERR the token is not 19 digits: ' .. token)
end
if newest and token < newest then
  return 'refused'
end
redis.call('HSET', KEYS[1], 'token', token, 'body', ARGV[2])
return 'written'
