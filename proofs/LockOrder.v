(* Freedom from deadlock of processes that take several locks in one fixed order, as
   take() in src/releasekit/state/lock_order.py makes sure at run time.

   Any number of processes and of locks. A process takes the locks of its list one by one, waits for
   each as long as somebody else has it, and gives all back at the end; it may die at any instant.
   (releasekit does not even wait, it fails; the theorem is about the order alone.) That the lists
   stay sorted is not assumed of the states, it is proved from the lists they start with. *)
From Coq Require Import Arith Lia List Sorted.
Import ListNotations.

Record state := mk {
  owner : nat -> option nat;
  held : nat -> list nat;
  todo : nat -> list nat
}.

Definition upd {A} (f : nat -> A) k v := fun x => if Nat.eqb x k then v else f x.
Definition drop (o : nat -> option nat) (p : nat) := fun i =>
  match o i with
  | Some q => if Nat.eqb q p then None else Some q
  | None => None
  end.

Definition acquired s p l r :=
  mk (upd (owner s) l (Some p)) (upd (held s) p (l :: held s p)) (upd (todo s) p r).
Definition finished s p := mk (drop (owner s) p) (upd (held s) p []) (todo s).

Inductive step : state -> state -> Prop :=
| acquire s p l r : todo s p = l :: r -> owner s l = None -> step s (acquired s p l r)
| finish s p : todo s p = [] -> held s p <> [] -> step s (finished s p)
| die s p : step s (mk (drop (owner s) p) (upd (held s) p []) (upd (todo s) p [])).

Definition init lists := mk (fun _ => None) (fun _ => []) lists.

Inductive reach lists : state -> Prop :=
| r0 : reach lists (init lists)
| rS s s' : reach lists s -> step s s' -> reach lists s'.

Definition unfinished s p := todo s p <> [] \/ held s p <> [].

(* Somebody gets a lock or comes to his end; nobody has to die for it. *)
Definition progress s :=
  (exists p l r, todo s p = l :: r /\ owner s l = None /\ step s (acquired s p l r)) \/
  (exists p, todo s p = [] /\ held s p <> [] /\ step s (finished s p)).

Lemma upd_same {A} (f : nat -> A) k v : upd f k v k = v.
Proof. unfold upd. now rewrite Nat.eqb_refl. Qed.

Lemma upd_diff {A} (f : nat -> A) k v x : x <> k -> upd f k v x = f x.
Proof. intro N. unfold upd. apply Nat.eqb_neq in N. now rewrite N. Qed.

Lemma drop_some o p i q : drop o p i = Some q -> o i = Some q /\ q <> p.
Proof.
  unfold drop. destruct (o i) as [x|]; [|discriminate].
  destruct (Nat.eqb_spec x p); intro H; inversion H; subst; auto.
Qed.

Section Ordered.
Variable rank : nat -> nat.
Variable bound : nat.
Variable lists : nat -> list nat.
Hypothesis rank_bound : forall p l, In l (lists p) -> rank l < bound.
Hypothesis ordered : forall p, StronglySorted (fun a b => rank a < rank b) (lists p).

Definition inv s :=
  (forall p l, owner s l = Some p -> In l (held s p)) /\
  (forall p l m, In l (held s p) -> In m (todo s p) -> rank l < rank m) /\
  (forall p, StronglySorted (fun a b => rank a < rank b) (todo s p)) /\
  (forall p l, In l (todo s p) -> rank l < bound).

Lemma inv_reach s : reach lists s -> inv s.
Proof.
  induction 1 as [|s s' _ (O & R & S & B) H].
  - repeat split; simpl; intros; try contradiction; try discriminate; eauto.
  - inversion H; subst; clear H; (split; [|split; [|split]]); simpl.
    + intros q m Hm. destruct (Nat.eq_dec m l) as [->|Hl].
      * rewrite upd_same in Hm. inversion Hm; subst. rewrite upd_same. now left.
      * rewrite upd_diff in Hm by auto. apply O in Hm. destruct (Nat.eq_dec q p) as [->|].
        -- rewrite upd_same. now right.
        -- now rewrite upd_diff.
    + intros q a m. destruct (Nat.eq_dec q p) as [->|Hq].
      * rewrite !upd_same. specialize (S p). rewrite H0 in S. inversion S as [|? ? S1 F]; subst.
        rewrite Forall_forall in F.
        intros [->|Ha] Hm; [now apply F|]. apply (R p); auto. rewrite H0. now right.
      * rewrite !upd_diff by auto. apply R.
    + intro q. destruct (Nat.eq_dec q p) as [->|Hq].
      * rewrite upd_same. specialize (S p). rewrite H0 in S. now inversion S.
      * rewrite upd_diff; auto.
    + intros q m. destruct (Nat.eq_dec q p) as [->|Hq].
      * rewrite upd_same. intro Hm. apply (B p). rewrite H0. now right.
      * rewrite upd_diff by auto. apply B.
    + intros q l Hl. apply drop_some in Hl. destruct Hl. rewrite upd_diff; auto.
    + intros q a m. destruct (Nat.eq_dec q p) as [->|Hq]; [rewrite upd_same; contradiction|].
      rewrite upd_diff by auto. apply R.
    + apply S.
    + apply B.
    + intros q l Hl. apply drop_some in Hl. destruct Hl. rewrite upd_diff; auto.
    + intros q a m. destruct (Nat.eq_dec q p) as [->|Hq]; [rewrite upd_same; contradiction|].
      rewrite !upd_diff by auto. apply R.
    + intro q. destruct (Nat.eq_dec q p) as [->|Hq].
      * rewrite upd_same. constructor.
      * rewrite upd_diff; auto.
    + intros q m. destruct (Nat.eq_dec q p) as [->|Hq]; [rewrite upd_same; contradiction|].
      rewrite upd_diff by auto. apply B.
Qed.

Theorem no_deadlock s : reach lists s -> forall p, unfinished s p -> progress s.
Proof.
  intro Hr. destruct (inv_reach s Hr) as (O & R & S & B).
  (* whoever has the lock that somebody waits for is further up the order: induct on the rest *)
  assert (K : forall n p l r, bound - rank l <= n -> todo s p = l :: r -> progress s).
  { induction n as [|n IH]; intros p l r Hn Ht.
    { assert (rank l < bound) by (apply (B p); rewrite Ht; now left). lia. }
    destruct (owner s l) as [q|] eqn:E.
    - apply O in E as Hin. destruct (todo s q) as [|m r'] eqn:Eq.
      + assert (held s q <> []) by (intro X; rewrite X in Hin; contradiction).
        right. exists q. repeat split; auto. now apply finish.
      + apply (IH q m r'); auto.
        assert (rank l < rank m) by (apply (R q); [auto | rewrite Eq; now left]).
        assert (rank m < bound) by (apply (B q); rewrite Eq; now left). lia.
    - left. exists p, l, r. repeat split; auto. now apply acquire. }
  intros p [H|H]; destruct (todo s p) as [|l r] eqn:E; try congruence.
  - now apply (K (bound - rank l) p l r).
  - right. exists p. repeat split; auto. now apply finish.
  - now apply (K (bound - rank l) p l r).
Qed.
End Ordered.

(* The locks of releasekit: the very list of src/releasekit/state/lock_order.py, which a test
   compares with this one. *)
Inductive kind :=
  ecosystem | upload_turn | directory | manifest | pins | wheel | environment | journal_sync
  | journal | journal_descriptor.

Definition order :=
  [ecosystem; upload_turn; directory; manifest; pins; wheel; environment; journal_sync;
   journal; journal_descriptor].

Definition kind_eq_dec (a b : kind) : {a = b} + {a <> b}.
Proof. decide equality. Defined.

Fixpoint index (k : kind) (l : list kind) :=
  match l with [] => 0 | x :: r => if kind_eq_dec k x then 0 else S (index k r) end.
Definition place k := index k order.

(* Nothing is left out of the list, and nothing is in it twice. *)
Lemma order_is_total : (forall k, In k order) /\ NoDup order.
Proof.
  split.
  - intros []; simpl; tauto.
  - unfold order. repeat constructor; simpl; intuition discriminate.
Qed.

Lemma place_is_an_order a b : place a = place b -> a = b.
Proof. destruct a, b; intro H; try reflexivity; discriminate H. Qed.

Lemma place_bound k : place k < length order.
Proof. destruct k; cbv; lia. Qed.

(* What take() lets pass: another kind that comes later, or a later name of the same kind. Names are
   numbers here, in the order of their text. *)
Definition lock := (kind * nat)%type.
Definition before (a b : lock) :=
  place (fst a) < place (fst b) \/ place (fst a) = place (fst b) /\ snd a < snd b.

Section Releasekit.
Variable names : nat.  (* how many there are *)
Definition code (l : lock) := place (fst l) * names + snd l.

Lemma code_keeps_order a b : snd a < names -> before a b -> code a < code b.
Proof. unfold before, code. destruct a as [a m], b as [b n]. simpl. intros Hm [H|[-> H]]; nia. Qed.

Lemma code_bound l : snd l < names -> code l < length order * names.
Proof. pose proof (place_bound (fst l)). unfold code. destruct l as [k n]. simpl in *. nia. Qed.

Variable asks : nat -> list lock.
Hypothesis named : forall p l, In l (asks p) -> snd l < names.
Hypothesis taken_in_order : forall p, StronglySorted before (asks p).

Definition codes p := map code (asks p).

Lemma sorted_codes l :
  (forall a, In a l -> snd a < names) -> StronglySorted before l ->
  StronglySorted (fun a b => a < b) (map code l).
Proof.
  intros N S. induction S as [|a l S IH F]; simpl; constructor.
  - apply IH. intros x Hx. apply N. now right.
  - rewrite Forall_forall in *. intros c Hc. apply in_map_iff in Hc. destruct Hc as (b & <- & Hb).
    apply code_keeps_order; [apply N; now left | now apply F].
Qed.

Theorem releasekit_never_deadlocks s :
  reach codes s -> forall p, unfinished s p -> progress s.
Proof.
  apply (no_deadlock (fun l => l) (length order * names)).
  - intros p l Hl. unfold codes in Hl. apply in_map_iff in Hl. destruct Hl as (a & <- & Ha).
    apply code_bound. now apply (named p).
  - intro p. apply sorted_codes; [exact (named p) | apply taken_in_order].
Qed.
End Releasekit.

(* Without the order: two processes take locks 0 and 1 in opposite orders and stand still. *)
Definition crossed p := match p with 0 => [0; 1] | 1 => [1; 0] | _ => [] end.
Definition one := acquired (init crossed) 0 0 [1].
Definition both := acquired one 1 1 [0].

Theorem unordered_deadlocks : reach crossed both /\ unfinished both 0 /\ ~ progress both.
Proof.
  split; [|split].
  - apply (rS _ one); [|now apply acquire].
    apply (rS _ (init crossed)); [apply r0 | now apply acquire].
  - left. discriminate.
  - intros [(p & l & r & Ht & Ho & _) | (p & Ht & Hh & _)].
    + destruct p as [|[|p]]; cbv in Ht; inversion Ht; subst; cbv in Ho; discriminate.
    + destruct p as [|[|p]]; cbv in Ht; [discriminate|discriminate|]. apply Hh. reflexivity.
Qed.

Print Assumptions no_deadlock.
Print Assumptions releasekit_never_deadlocks.
Print Assumptions order_is_total.
Print Assumptions place_is_an_order.
Print Assumptions unordered_deadlocks.
