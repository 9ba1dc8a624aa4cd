package upgrade_test

import (
	"regexp"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// since2 are the parts of the statements of queues that version 1 did not have.
var since2 = regexp.MustCompile(`(?i)(q\.)?\bcoalesce\((q\.)?beside, (q\.)?ticket\), ` +
	`|, tenant, beside\b|, w\.tenant, nullif\(w\.beside, 0\)|, COALESCE\(UNHEX\(j\.t\), ''\), j\.b` +
	`|,\s+unhex\(coalesce\(j\.value ->> 't', ''\)\), j\.value ->> 'b'` +
	`|\bbeside = CASE [^;]*? ELSE excluded\.beside END,\s+tenant = excluded\.tenant,` +
	`|, tenant = (excluded\.tenant|VALUES\(tenant\)), beside = (excluded\.beside|VALUES\(beside\))`)

// written names the columns that version 2 has added.
var written = regexp.MustCompile(`excluded\.(tenant|beside)|VALUES\((tenant|beside)\)|alive_until, tenant|coalesce\((q\.)?beside`)

// asOfVersion1 makes the statements of queues those of version 1.
func asOfVersion1(s sqlstore.Sections) {
	for name, text := range s {
		if name == "queue-turn" || !strings.Contains(strings.ToLower(text), "beside") {
			continue
		}
		if s[name] = since2.ReplaceAllString(text, ""); written.MatchString(s[name]) {
			panic(name + " is not as version 1 had it: " + s[name])
		}
	}
}
