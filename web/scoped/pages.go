package scoped

import (
	"slipway.dev/slipway/inventory"
)

// kept returns the rows that keep keeps, as keep leaves them.
func kept[T any](rows []T, keep func(*T) (bool, error)) (out []T, err error) {
	for i := range rows {
		ok, err := keep(&rows[i])
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, rows[i])
		}
	}
	return out, nil
}

// keptPages reads pages until there are enough rows that keep keeps.
func keptPages[T any](
	p inventory.Page, read func(inventory.Page) ([]T, error), key func(T) string, keep func(*T) (bool, error),
) (out []T, err error) {
	const step = 500
	at := inventory.Page{After: p.After, Limit: step}
	for {
		rows, err := read(at)
		if err != nil {
			return nil, err
		}
		some, err := kept(rows, keep)
		if err != nil {
			return nil, err
		}
		if out = append(out, some...); p.Limit > 0 && len(out) >= p.Limit {
			return out[:p.Limit], nil
		}
		if len(rows) < step {
			return out, nil
		}
		at.After = key(rows[len(rows)-1])
	}
}

// unlessRefused keeps errors that are no answer.
func unlessRefused(err error) error {
	if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Forbidden) {
		return nil
	}
	return err
}
