package holds

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/custody-storage/custody/intents"
)

// WriteTable writes rows for a person. With wide, it has what is long too.
func WriteTable(out io.Writer, rows []Row, now time.Time, wide bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	heading := []string{"VOLUME", "NODE", "STATE", "EPOCH", "SINCE", "HEARTBEAT", "INSTANCE", "FENCES"}
	if wide {
		heading = append(heading, "ID", "MACHINE", "BOOT", "FENCER", "FORMATTED")
	}
	fmt.Fprintln(w, strings.Join(heading, "\t"))
	for _, r := range rows {
		since, fences := "", ""
		if r.Since != nil {
			since = duration.HumanDuration(now.Sub(*r.Since))
		}
		if n := len(r.Fences); n > 0 {
			fences = strconv.Itoa(n)
		}
		cells := []string{r.Spec(), r.Node, r.State, strconv.FormatUint(r.Epoch, 10), since, r.Heartbeat.State, r.Instance, fences}
		if wide {
			cells = append(cells, r.ImageID, r.Machine, r.Boot, r.Fencer, strconv.FormatBool(r.Formatted))
		}
		for i := range cells {
			if cells[i] = intents.Printable(cells[i]); cells[i] == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// WriteText writes an explanation for a person.
func (e Explanation) WriteText(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (image id %s, epoch %d)\n\nWho holds it\n  %s.\n\nWhy it can't be taken\n", e.Spec(), e.ImageID, e.Epoch, intents.Printable(e.Who))
	blocked := e.Blocked
	if blocked == "" {
		blocked = "It can be"
	}
	fmt.Fprintf(&b, "  %s.\n", intents.Printable(blocked))
	section(&b, "What happened", e.Happened)
	section(&b, "What to do", e.Do)
	_, err := io.WriteString(out, b.String())
	return err
}

func section(b *strings.Builder, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", heading)
	for _, l := range lines {
		fmt.Fprintf(b, "  - %s\n", intents.Printable(l))
	}
}
