-- Returns event, name and value of each step, in the order in which they were appended. ARGV: now
local row = find()
local steps = {}
if not row then return steps end
for i = 0, row.n - 1 do
    local record = step(i)
    table.insert(steps, record.event)
    table.insert(steps, record.name)
    table.insert(steps, redis.call('HGET', key, 's' .. record.event .. ' ' .. record.name))
end
return steps
