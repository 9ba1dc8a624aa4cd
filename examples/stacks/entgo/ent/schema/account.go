// Package schema describes the example's one entity to ent's generator.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	entschema "entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
)

// Account is a row of the table account.
type Account struct{ ent.Schema }

// Annotations names the table.
func (Account) Annotations() []entschema.Annotation {
	return []entschema.Annotation{entsql.Annotation{Table: "account"}}
}

// Fields are the columns.
func (Account) Fields() []ent.Field {
	return []ent.Field{field.String("id"), field.Int64("balance")}
}
