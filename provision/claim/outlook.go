package claim

import (
	"fmt"
	"time"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
)

// forecast is the inventory as placement saw it last, for machines that get no host.
type forecast struct {
	of      *placement.Forecast
	expires time.Time
}

const (
	// forecastShare is how much longer a forecast holds than what it took: a hundredth of a processor is for that.
	forecastShare = 100
	// outlooksFor bounds what one round spends on outlooks, for others wait behind it; the rest comes with the next rounds.
	outlooksFor = 250 * time.Millisecond
)

// outlook adds to the choices that found no host whether any host of the inventory could ever do.
func (f *forecast) outlook(tx inventory.Tx, known *inspections, wants []placement.Demand, choices []placement.Choice, now time.Time) error {
	began := time.Now()
	for i := range choices {
		c := &choices[i]
		if c.Host != nil || c.Code == placement.InvalidConfiguration {
			continue
		}
		if err := f.renew(tx, known, now); err != nil {
			return err
		}
		c.Outlook = f.of.Outlook(wants[i])
		if time.Since(began) > outlooksFor {
			break
		}
	}
	if until := now.Add(forecastShare * time.Since(began)); until.After(f.expires) {
		f.expires = until
	}
	return nil
}

// renew makes a new forecast when there is none that holds. Only the round that places machines uses it.
func (f *forecast) renew(tx inventory.Tx, known *inspections, now time.Time) error {
	if f.of != nil && now.Before(f.expires) {
		return nil
	}
	var all []placement.Candidate
	for page := (inventory.Page{Limit: 1000}); ; {
		hosts, err := tx.ListHosts(inventory.HostFilter{}, page)
		if err != nil {
			return fmt.Errorf("list hosts: %w", err)
		}
		for _, h := range hosts {
			page.After = h.Name
			n, err := tx.LastInspection(h.ID)
			if err != nil {
				return fmt.Errorf("read inspections of %s: %w", h.Name, err)
			}
			c, _, err := known.candidate(tx, h, n)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
		if len(hosts) < page.Limit {
			break
		}
	}
	f.of, f.expires = placement.NewForecast(all), now.Add(time.Millisecond)
	return nil
}
