-- The limits of semaphores. What is granted is counted in a generation of the limit. A transaction
-- that grants reads the generation when it has the file's write lock, and grants nothing if it has
-- changed. So a count that was read in a generation misses no grant of an earlier one.

-- name: limit-look
-- name
SELECT slots, peak, generation FROM rowlock_limit WHERE name = ?

-- name: limit-make
-- name, slots, peak
INSERT INTO rowlock_limit (name, slots, peak, generation) VALUES (?, ?, ?, 1)
ON CONFLICT (name) DO NOTHING

-- name: limit-resize
-- slots, slots, name
UPDATE rowlock_limit SET slots = ?, peak = max(peak, ?), generation = generation + 1
WHERE name = ?

-- name: limit-check
-- name, generation
SELECT 1 FROM rowlock_limit WHERE name = ? AND generation = ?
