package sqlstore

import (
	"fmt"
	"math"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
)

// stamp rounds now to what the database keeps, so that the caller's value equals the stored one.
func stamp(now time.Time) time.Time { return now.UTC().Truncate(time.Millisecond) }

// limit is the page's Limit for SQL, in which no number means all.
func limit(n int) int64 {
	if n <= 0 {
		return math.MaxInt64
	}
	return int64(n)
}

// marks are the places of n arguments.
func marks(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(all, ", ")
}

// jsonTexts is column.JSONText for several values. It writes references with the pools of their things.
func (t *tx) jsonTexts(values ...any) ([]string, error) {
	texts := make([]string, len(values))
	for i, v := range values {
		var err error
		if refs, is := v.([]inventory.Ref); is && len(refs) > 0 {
			if v, err = t.pooled(refs); err != nil {
				return nil, err
			}
		}
		if texts[i], err = column.JSONText(v); err != nil {
			return nil, err
		}
	}
	return texts, nil
}
