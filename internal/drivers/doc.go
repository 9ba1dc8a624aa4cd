// Package drivers holds tests of what rowlock does with drivers that its own tests do not use. Each
// driver has a package, because two of them register the same name.
package drivers
