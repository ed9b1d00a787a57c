package explore

import "github.com/custody-storage/custody/provision"

func provisionWhy(i int) string { return provision.Why(i).String() }
