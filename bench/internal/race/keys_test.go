package race

import "testing"

func TestAWalkComesToEachKeyBeforeOneRecurs(t *testing.T) {
	const among = 1000
	var k Keys
	seen := make(map[string]int)
	for n := range 3 * among {
		key := k.Next(Contender{Series: 'r', Among: among}, n%64, n)
		if before, ok := seen[key]; ok && n-before != among {
			t.Fatalf("%s recurs after %d steps, not %d", key, n-before, among)
		}
		seen[key] = n
	}
	if len(seen) != among {
		t.Errorf("the walk comes to %d of %d keys", len(seen), among)
	}
}
