package show

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table writes rows in columns, under a rule after the first one, which is the
// heading. Cells to the right of an empty column stay aligned.
func Table(out io.Writer, rows ...[]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		fmt.Fprintln(out, line(row, widths))
		if n == 0 {
			rule := make([]string, len(widths))
			for i, w := range widths {
				rule[i] = strings.Repeat("-", w)
			}
			fmt.Fprintln(out, line(rule, widths))
		}
	}
}

func line(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
	}
	return strings.TrimRight(b.String(), " ")
}
