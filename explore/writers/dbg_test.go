package writers

import (
	"context"
	"testing"

	"github.com/custody-storage/custody/explore/search"
)

func TestDebug(t *testing.T) {
	c := class{name: "try", nodes: 2, format: true, left: parseBudget("stage=2")}
	m := newModel(&c)
	defer func() {
		if r := recover(); r != nil {
			var w world
			m.cd.read(m.key, &w)
			m.turn = turn{calm: true, said: func(s string) { t.Log(s) }}
			defer func() { recover() }()
			m.aftermath(w)
		}
	}()
	search.Run(context.Background(), m, search.Limits{States: 100000})
}
