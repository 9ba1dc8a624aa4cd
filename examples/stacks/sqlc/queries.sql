-- name: Deposit :exec
UPDATE account SET balance = balance + sqlc.arg(amount) WHERE id = sqlc.arg(id);

-- name: Balance :one
SELECT balance FROM account WHERE id = sqlc.arg(id);
