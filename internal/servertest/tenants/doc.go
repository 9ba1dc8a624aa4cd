// Package tenants tests clients on pools whose sessions an application has led to other tables of
// the same names: those of a tenant's schema or database, or temporary ones.
package tenants
