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
func (p *Placer) outlook(tx inventory.Tx, demands []placement.Demand, choices []placement.Choice, now time.Time) error {
	began := time.Now()
	for i := range choices {
		c := &choices[i]
		if c.Host != nil || c.Code == placement.InvalidConfiguration {
			continue
		}
		if err := p.renewForecast(tx, now); err != nil {
			return err
		}
		c.Outlook = p.forecast.of.Outlook(demands[i])
		if time.Since(began) > outlooksFor {
			break
		}
	}
	if until := now.Add(forecastShare * time.Since(began)); until.After(p.forecast.expires) {
		p.forecast.expires = until
	}
	return nil
}

// renewForecast makes a new forecast when there is none that holds. Only the round that places machines uses it.
func (p *Placer) renewForecast(tx inventory.Tx, now time.Time) error {
	if p.forecast.of != nil && now.Before(p.forecast.expires) {
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
			c, _, err := p.candidate(tx, h, n)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
		if len(hosts) < page.Limit {
			break
		}
	}
	p.forecast.of, p.forecast.expires = placement.NewForecast(all), now.Add(time.Millisecond)
	return nil
}
