// Command picture draws docs/fence.svg, the picture at the top of README.md. Run it in the root of
// the repository: go run ./internal/picture
package main

import (
	"log"
	"os"
)

func main() {
	if err := os.WriteFile("docs/fence.svg", draw(), 0o644); err != nil {
		log.Fatal(err)
	}
}
