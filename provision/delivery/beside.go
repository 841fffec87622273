package delivery

import (
	"slipway.dev/slipway/inventory"
)

// isBeside reports whether another server gives the addresses of a subnet.
func isBeside(tx inventory.Tx, subnet string) bool {
	n, err := tx.Subnets().Find(subnet)
	return err == nil && n.Mode == inventory.ModeProxy
}
