package settings

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Setting is one that the server has.
type Setting struct {
	Name, Now string
	// Values are those to try: every other value of a list, and the ends and a few more of a range.
	Values []string
}

// Queryer is a *sql.DB or *sql.Conn.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Settings are those of a session of the server, by what the server says of itself.
func Settings(ctx context.Context, product string, db *sql.DB) ([]Setting, error) {
	switch product {
	case "postgres":
		return read(ctx, db, `SELECT name, setting, vartype, coalesce(min_val, ''),
			coalesce(max_val, ''), coalesce(array_to_string(enumvals, ','), '') FROM pg_settings
			WHERE context IN ('user', 'superuser') ORDER BY name`)
	case "mariadb":
		return read(ctx, db, `SELECT LOWER(variable_name), COALESCE(session_value, ''), variable_type,
			COALESCE(numeric_min_value, ''), COALESCE(numeric_max_value, ''),
			COALESCE(enum_value_list, '') FROM information_schema.system_variables
			WHERE variable_scope LIKE 'SESSION%' ORDER BY variable_name`)
	case "mysql":
		return ofMySQL(ctx, db)
	}
	return pragmas(ctx, db)
}

// ServerSettings are those that no session can be set to, and that a server takes while it runs.
func ServerSettings(ctx context.Context, product string, db Queryer) ([]Setting, error) {
	switch product {
	case "postgres":
		return read(ctx, db, `SELECT name, setting, vartype, coalesce(min_val, ''),
			coalesce(max_val, ''), coalesce(array_to_string(enumvals, ','), '') FROM pg_settings
			WHERE context IN ('sighup', 'backend', 'superuser-backend') ORDER BY name`)
	case "mariadb":
		return read(ctx, db, `SELECT LOWER(variable_name), COALESCE(global_value, ''), variable_type,
			COALESCE(numeric_min_value, ''), COALESCE(numeric_max_value, ''),
			COALESCE(enum_value_list, '') FROM information_schema.system_variables
			WHERE variable_scope = 'GLOBAL' AND read_only = 'NO' ORDER BY variable_name`)
	}
	return globalsOfMySQL(ctx, db)
}

// globalsOfMySQL finds them by what the server answers to a SET of the value that they have.
func globalsOfMySQL(ctx context.Context, db Queryer) (all []Setting, err error) {
	found, err := read(ctx, db, `SELECT v.variable_name, v.variable_value, '', i.min_value,
		i.max_value, '' FROM performance_schema.global_variables AS v
		JOIN performance_schema.variables_info AS i USING (variable_name) ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		_, err := db.ExecContext(ctx, `SET SESSION `+s.Name+` = DEFAULT`)
		if err == nil || !strings.Contains(err.Error(), "1229") {
			continue
		}
		_, err = db.ExecContext(ctx, `SET GLOBAL `+s.Name+` = @@GLOBAL.`+s.Name)
		if err == nil || !strings.Contains(err.Error(), "1238") {
			all = append(all, s)
		}
	}
	return all, nil
}

func read(ctx context.Context, db Queryer, query string) (all []Setting, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s Setting
		var kind, least, most, list string
		if err := rows.Scan(&s.Name, &s.Now, &kind, &least, &most, &list); err != nil {
			return nil, err
		}
		s.Values = values(s, kind, least, most, list)
		all = append(all, s)
	}
	return all, rows.Err()
}

// ofMySQL finds the variables that have a value for a session by what the server answers to a SET.
func ofMySQL(ctx context.Context, db *sql.DB) (all []Setting, err error) {
	found, err := read(ctx, db, `SELECT v.variable_name, v.variable_value, '', i.min_value,
		i.max_value, '' FROM performance_schema.session_variables AS v
		JOIN performance_schema.variables_info AS i USING (variable_name) ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = conn.Raw(func(any) error { return sql.ErrConnDone })
		_ = conn.Close()
	}()
	for _, s := range found {
		_, err := conn.ExecContext(ctx, `SET SESSION `+s.Name+` = DEFAULT`)
		if err == nil || !strings.Contains(err.Error(), "1229") && !strings.Contains(err.Error(), "1238") {
			all = append(all, s)
		}
	}
	return all, nil
}

func pragmas(ctx context.Context, db *sql.DB) (all []Setting, err error) {
	rows, err := db.QueryContext(ctx, `SELECT name FROM pragma_pragma_list ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		s := Setting{Values: nil}
		if err := rows.Scan(&s.Name); err != nil {
			return nil, err
		}
		s.Values = texts["sqlite "+s.Name]
		all = append(all, s)
	}
	return all, rows.Err()
}

// values are those to try of one setting.
func values(s Setting, kind, least, most, list string) (all []string) {
	now := strings.ToLower(s.Now)
	add := func(v string) {
		if strings.ToLower(v) != now {
			all = append(all, v)
		}
	}
	switch {
	case texts[s.Name] != nil:
		for _, v := range texts[s.Name] {
			add(v)
		}
	case now == "on" || now == "off":
		add("on")
		add("off")
	case list != "" && kind != "FLAGSET" && kind != "SET":
		for v := range strings.SplitSeq(list, ",") {
			add(v)
		}
	case number.MatchString(now):
		n, err := strconv.ParseFloat(now, 64)
		if least != "" && most != "" && least != most {
			add(least)
			add(most)
		}
		if err == nil && n > 1 && n < 1<<62 {
			add(fmt.Sprint(int64(n / 2)))
		}
		if kind == "" { // MySQL tells no range of many
			add("0")
			add("1")
		}
	}
	return all
}

var number = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// texts are values of settings of which the server tells no range.
var texts = map[string][]string{
	"DateStyle": {"SQL, DMY", "German, YMD", "Postgres, MDY"}, "TimeZone": {"Asia/Kathmandu"},
	"timezone_abbreviations": {"Australia", "India"}, "client_encoding": {"LATIN1", "SQL_ASCII"},
	"search_path": {"public, pg_catalog"}, "application_name": {"other"},
	"default_table_access_method": {}, "statement_timeout": {"1000"},
	"synchronous_commit":                  {"off", "local", "remote_write"},
	"default_transaction_read_only":       {"on"},
	"max_stack_depth":                     {"1024"},
	"lock_timeout":                        {"1"},
	"idle_in_transaction_session_timeout": {"1000"},
	"transaction_timeout":                 {"2000"},
	"idle_session_timeout":                {"1000"},
	"default_statistics_target":           {"1", "10000"},
	// MySQL and MariaDB
	"sql_mode": {
		"", "ANSI,NO_BACKSLASH_ESCAPES", "TRADITIONAL", "ORACLE", "EMPTY_STRING_IS_NULL", "MSSQL",
		"PAD_CHAR_TO_FULL_LENGTH", "HIGH_NOT_PRECEDENCE,IGNORE_SPACE,PIPES_AS_CONCAT", "NO_UNSIGNED_SUBTRACTION",
		"NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO", "TIME_ROUND_FRACTIONAL,SIMULTANEOUS_ASSIGNMENT",
		"NO_AUTO_VALUE_ON_ZERO,NO_DIR_IN_CREATE,ONLY_FULL_GROUP_BY", "TIME_TRUNCATE_FRACTIONAL,ALLOW_INVALID_DATES,REAL_AS_FLOAT",
	},
	"optimizer_switch": {
		"derived_merge=off", "index_merge=off", "semijoin=off", "materialization=off",
		"subquery_to_derived=on", "mrr=on,mrr_cost_based=off", "engine_condition_pushdown=off", "index_condition_pushdown=off",
		"derived_condition_pushdown=off", "derived_with_keys=off", "split_materialized=off", "condition_pushdown_for_derived=off",
		"exists_to_in=off", "block_nested_loop=off", "batched_key_access=on", "hash_join=off",
		"prefer_ordering_index=off", "use_index_extensions=off", "skip_scan=off", "rowid_filter=off", "table_elimination=off",
		"subquery_cache=off", "outer_join_with_cache=off", "optimize_join_buffer_size=off", "firstmatch=off,loosescan=off",
		"condition_fanout_filter=off", "duplicateweedout=off", "hypergraph_optimizer=on", "orderby_uses_equalities=off",
		"not_null_range_scan=on", "join_cache_hashed=off", "sargable_casefold=off", "cset_narrowing=off", "hash_set_operations=off",
		"favor_range_scan=on", "use_invisible_indexes=on",
	},
	"time_zone": {"+05:45"}, "timestamp": {"1"}, "sql_select_limit": {"1"},
	"character_set_client": {"latin1", "gbk"}, "character_set_results": {"latin1", "utf16"},
	"character_set_connection": {"latin1", "utf16"}, "collation_connection": {"latin1_bin", "utf8mb4_general_ci"},
	"completion_type": {"CHAIN", "RELEASE"}, "autocommit": {"OFF"}, "binlog_format": {"STATEMENT", "MIXED"},
	"transaction_isolation": {"READ-UNCOMMITTED", "REPEATABLE-READ", "SERIALIZABLE"},
	"tx_isolation":          {"READ-UNCOMMITTED", "REPEATABLE-READ", "SERIALIZABLE"},
	"max_statement_time":    {"1"}, "max_execution_time": {"1000"}, "wait_timeout": {"1"},
	"idle_transaction_timeout": {"1"}, "idle_write_transaction_timeout": {"1"}, "idle_readonly_transaction_timeout": {"1"},
	"lc_messages": {"de_DE"}, "lc_time_names": {"de_DE"}, "old_mode": {"UTF8_IS_UTF8MB3,ZERO_DATE_TIME_CAST"},
	"div_precision_increment": {"0", "30"}, "max_session_mem_used": {"1048576"}, "group_concat_max_len": {"4"},
	"default_storage_engine": {"MyISAM", "MEMORY"}, "default_tmp_storage_engine": {"MyISAM"}, "storage_engine": {"MyISAM"},
	"character_set_server": {"latin1", "utf16"}, "collation_server": {"latin1_swedish_ci"},
	"character_set_database": {"latin1"}, "collation_database": {"latin1_swedish_ci"}, "character_set_filesystem": {"latin1"},
	"wsrep_on": {}, "query_cache_type": {"ON", "DEMAND"}, "insert_id": {"77"}, "last_insert_id": {"77"}, "identity": {"77"},
	"net_read_timeout": {"5"}, "net_write_timeout": {"5"}, "profiling": {"1"}, "debug": {}, "debug_sync": {},
	"system_versioning_asof": {"2020-01-01 00:00:00"}, "log_slow_filter": {}, "log_slow_verbosity": {}, "optimizer_trace": {"enabled=on"},
	"max_join_size": {"1"}, "alter_algorithm": {"COPY", "INPLACE", "NOCOPY", "INSTANT"}, "transaction_read_only": {"ON"}, "tx_read_only": {"ON"},
	"session_track_system_variables": {"*"}, "pseudo_thread_id": {"99"}, "max_allowed_packet": {}, "server_id": {"7"},
	// What the server takes at once, or fills a disk with.
	"innodb_log_buffer_size": {"262144"}, "key_buffer_size": {"0", "4194304"}, "innodb_log_file_size": {"4194304"},
	"innodb_redo_log_capacity": {"16777216"}, "innodb_buffer_pool_size": {"16777216"}, "query_cache_size": {"4194304"},
	"aria_log_file_size": {"8388608"}, "aria_sort_buffer_size": {"16384"}, "binlog_file_cache_size": {"8192"}, "rpl_read_size": {"16384"},
	"binlog_cache_size": {"4096"}, "binlog_stmt_cache_size": {"4096"}, "innodb_ft_total_cache_size": {"32000000"}, "temp_buffers": {"100"},
	"thread_pool_size": {"1"}, "performance_schema_max_digest_sample_age": {"0"}, "host_cache_size": {"0"},
	"innodb_io_capacity": {"100", "20000"}, "innodb_encryption_threads": {"1"}, "slave_parallel_threads": {"2"}, "slave_parallel_workers": {"2"},
	"query_prealloc_size": {"8192", "65536"}, "transaction_prealloc_size": {"1024"}, "range_alloc_block_size": {"65536"},
	"query_alloc_block_size": {"1024"}, "transaction_alloc_block_size": {"1024"}, "innodb_compression_level": {"1", "9"},
	"max_connections": {"75"}, "binlog_group_commit_sync_delay": {"1000"}, "pre_auth_delay": {}, "post_auth_delay": {}, "log_line_prefix": {},
	"log_destination": {"csvlog"}, "autovacuum_work_mem": {"1024"}, "innodb_max_undo_log_size": {"20971520"}, "wal_keep_size": {"10"},
	"init_connect": {"SET SESSION sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES', autocommit = 0, sql_auto_is_null = 1, sql_select_limit = 1"},
	// SQLite
	"sqlite synchronous": {"0", "1", "3"}, "sqlite busy_timeout": {"1", "0"}, "sqlite query_only": {"1"},
	"sqlite foreign_keys": {"1"}, "sqlite defer_foreign_keys": {"1"}, "sqlite recursive_triggers": {"1"},
	"sqlite ignore_check_constraints": {"1"}, "sqlite case_sensitive_like": {"1"}, "sqlite reverse_unordered_selects": {"1"},
	"sqlite read_uncommitted": {"1"}, "sqlite automatic_index": {"0"}, "sqlite cache_size": {"1", "-100000"}, "sqlite cache_spill": {"0", "1"},
	"sqlite mmap_size": {"0", "268435456"}, "sqlite temp_store": {"1", "2"}, "sqlite threads": {"8"}, "sqlite cell_size_check": {"1"},
	"sqlite checkpoint_fullfsync": {"1"}, "sqlite fullfsync": {"1"}, "sqlite journal_size_limit": {"0", "100000"},
	"sqlite secure_delete": {"1", "2"}, "sqlite wal_autocheckpoint": {"0", "1"}, "sqlite count_changes": {"1"}, "sqlite empty_result_callbacks": {"1"},
	"sqlite full_column_names": {"1"}, "sqlite short_column_names": {"0"}, "sqlite legacy_alter_table": {"1"}, "sqlite trusted_schema": {"0", "1"},
	"sqlite writable_schema": {"1"}, "sqlite journal_mode": {"DELETE", "TRUNCATE", "PERSIST", "WAL"}, "sqlite analysis_limit": {"1"},
	"sqlite auto_vacuum": {"1", "2"}, "sqlite user_version": {"9"}, "sqlite application_id": {"9"},
}
