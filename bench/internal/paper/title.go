package paper

var titles = map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL", "mariadb": "MariaDB", "mysql": "MySQL", "redis": "Redis"}

// Title is a system's name as its makers write it.
func Title(system string) string {
	if t, ok := titles[system]; ok {
		return t
	}
	return system
}
