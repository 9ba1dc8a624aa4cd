package languages

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// The server grants the key, and its answer is lost. The program releases that grant without its
// token, and has another one long before the first lease expires.
func TestAGrantWhoseAnswerIsLostIsGivenUp(t *testing.T) {
	const ttl = time.Minute
	servertest.EachServer(t, func(s *servertest.Scene) {
		for _, language := range []string{"python", "java"} {
			s.Part(language, func(s *servertest.Scene) {
				s.Parallel()
				testdb.Installed(s, language)
				env, hole := s.Env.BehindHole(s)
				p := languages[language](&servertest.Scene{T: s.T, Env: env}, language, ttl)
				ask(s, p, "state", "lost") // it has started
				for range 2 {              // make, and then take
					before := s.Number(`SELECT COALESCE(MAX(token), 0) FROM {rowlock} WHERE {key} = ?`,
						[]byte(language))
					hole.LoseAnswer(2) // the first is that of look
					s.Within(ttl/2, "the grant", func() {
						p.Send("lock")
						if n := token(s, p); int64(n) != before+2 {
							s.Errorf("token %d after %d, want another grant between them", n, before)
						}
					})
					ask(s, p, "unlock", "free")
				}
			})
		}
	})
}
