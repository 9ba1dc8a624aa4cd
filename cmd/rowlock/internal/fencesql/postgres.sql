-- name: fence
-- One statement. It fails in the server, so that no client can miss it, and then the transaction can only be rolled
-- back. The row stays locked until the transaction ends, and an extended lease counts from its commit on.
DO $fence$ BEGIN
  UPDATE rowlock SET expires_at = CASE WHEN expires_at > clock_timestamp()
    THEN greatest(expires_at, clock_timestamp() + @ttl * interval '1 microsecond')
    ELSE expires_at END
  WHERE key = '\x@key'::bytea AND owner = '\x@owner'::bytea AND token = @token AND placement = 0;
  IF NOT FOUND THEN
    RAISE EXCEPTION '@name: fenced: token @token does not hold the lock any more: roll back';
  END IF;
END $fence$;
