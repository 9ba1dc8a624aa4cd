package settings

import (
	"fmt"
	"strings"
)

// Page is docs/server-settings.md.
func Page() (string, error) {
	var b strings.Builder
	b.WriteString(intro)
	for _, product := range []struct{ name, title string }{
		{"postgres", "PostgreSQL"}, {"mysql", "MySQL"}, {"mariadb", "MariaDB"}, {"sqlite", "SQLite"},
	} {
		fmt.Fprintf(&b, "\n## %s\n", product.title)
		for i, list := range Lists(product.name) {
			groups, err := Groups(list)
			if err != nil {
				return "", err
			}
			fmt.Fprint(&b, of[i], "\n| settings | verdict | |\n|---|---|---|\n")
			for _, g := range groups {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.Join(g.Names, "`, `"), g.Kind, g.Why)
			}
		}
	}
	return b.String(), nil
}

// of says what the settings of a product's lists are set of.
var of = []string{
	"", "\nOf the server, while it runs:\n", "\nOf the server as it starts or is made, a choice:\n",
}

const intro = `# Settings of the server

You get: every setting that a session, a role or a server can have, and what it changes for rowlock.

- **pinned**: each connection that rowlock keeps to itself (a *pinned connection*, of
  ` + "`Config.Connections`" + `), and each migration, gives it a literal value. What an application has
  set on a connection that it returned to its pool changes nothing, nor does a default of a role, a
  database or the server.
- **connections**: the same for pinned connections. In the application's own transactions, as around
  ` + "`Fence`" + `, it is what the application makes of it.
- **checked**: ` + "`Open`" + ` refuses a value that cannot work, and names the cure.
- **none**: it changes no meaning, for the reason given.
- **unflipped**: the test leaves it alone, for the reason given.

The lists are [internal/servertest/settings](../internal/servertest/settings). A test gives every
setting other values, and runs locks of every kind and migrations under them: in a session, as what
a new session begins with (` + "`SET GLOBAL`, `ALTER ROLE`, `ALTER DATABASE`, `ALTER SYSTEM`" + `), and on
servers that were started with them. The tables that a migration makes must be those that it makes
without the setting. Others fail for a setting that a new version of a server has and the list
has not.
`
