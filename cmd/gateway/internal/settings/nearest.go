package settings

// Nearest is the candidate that takes the fewest edits to become the word; the
// first of them when several are as near, empty when there is none.
func Nearest(word string, candidates []string) string {
	best, fewest := "", -1
	for _, c := range candidates {
		if d := edits(word, c); fewest < 0 || d < fewest {
			best, fewest = c, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two words, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
