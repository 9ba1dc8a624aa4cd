package frame

// Quoted puts quotes around each number that stands where a key of an object is. The registry
// writes such keys bare, and no reader of JSON takes them.
func Quoted(text []byte) []byte {
	var out []byte
	inside := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inside && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			c = text[i]
		case c == '"':
			inside = !inside
		case !inside && (c == '{' || c == ','):
			if n := digits(text[i+1:]); n > 0 {
				out = append(out, c, '"')
				out = append(out, text[i+1:i+1+n]...)
				c = '"'
				i += n
			}
		}
		out = append(out, c)
	}
	return out
}

// digits is how many there are before a colon.
func digits(text []byte) int {
	for i, c := range text {
		switch {
		case c == ':':
			return i
		case c < '0' || c > '9':
			return 0
		}
	}
	return 0
}
