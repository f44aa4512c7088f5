-- Extends the lease. ARGV: now, fence, lease
local row = find_fence(ARGV[2])
if not row or row.phase == '2' then return { 'lost' } end
-- A renewal that was sent before the outcome may arrive after it.
if row.phase == '0' then
    local lease = now + tonumber(ARGV[3])
    redis.call('HSET', key, 'lease', text(lease))
    expire_at(math.max(lease, row.keep))
end
return { 'written' }
