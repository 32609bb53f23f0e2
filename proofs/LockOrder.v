(* Freedom from deadlock of processes that take several locks in one fixed order, as
   Locks.take in src/releasekit/state/locks.py makes sure at run time.

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
Hypothesis rank_bound : forall l, rank l < bound.
Hypothesis ordered : forall p, StronglySorted (fun a b => rank a < rank b) (lists p).

Definition inv s :=
  (forall p l, owner s l = Some p -> In l (held s p)) /\
  (forall p l m, In l (held s p) -> In m (todo s p) -> rank l < rank m) /\
  (forall p, StronglySorted (fun a b => rank a < rank b) (todo s p)).

Lemma inv_reach s : reach lists s -> inv s.
Proof.
  induction 1 as [|s s' _ (O & R & S) H].
  - repeat split; simpl; intros; try contradiction; try discriminate; apply ordered.
  - inversion H; subst; clear H; (split; [|split]); simpl.
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
    + intros q l Hl. apply drop_some in Hl. destruct Hl. rewrite upd_diff; auto.
    + intros q a m. destruct (Nat.eq_dec q p) as [->|Hq]; [rewrite upd_same; contradiction|].
      rewrite upd_diff by auto. apply R.
    + apply S.
    + intros q l Hl. apply drop_some in Hl. destruct Hl. rewrite upd_diff; auto.
    + intros q a m. destruct (Nat.eq_dec q p) as [->|Hq]; [rewrite upd_same; contradiction|].
      rewrite !upd_diff by auto. apply R.
    + intro q. destruct (Nat.eq_dec q p) as [->|Hq].
      * rewrite upd_same. constructor.
      * rewrite upd_diff; auto.
Qed.

Theorem no_deadlock s : reach lists s -> forall p, unfinished s p -> progress s.
Proof.
  intro Hr. destruct (inv_reach s Hr) as (O & R & S).
  (* whoever has the lock that somebody waits for is further up the order: induct on the rest *)
  assert (K : forall n p l r, bound - rank l <= n -> todo s p = l :: r -> progress s).
  { induction n as [|n IH]; intros p l r Hn Ht; [specialize (rank_bound l); lia|].
    destruct (owner s l) as [q|] eqn:E.
    - apply O in E as Hin. destruct (todo s q) as [|m r'] eqn:Eq.
      + assert (held s q <> []) by (intro X; rewrite X in Hin; contradiction).
        right. exists q. repeat split; auto. now apply finish.
      + apply (IH q m r'); auto.
        assert (rank l < rank m) by (apply (R q); [auto | rewrite Eq; now left]).
        specialize (rank_bound m); lia.
    - left. exists p, l, r. repeat split; auto. now apply acquire. }
  intros p [H|H]; destruct (todo s p) as [|l r] eqn:E; try congruence.
  - now apply (K (bound - rank l) p l r).
  - right. exists p. repeat split; auto. now apply finish.
  - now apply (K (bound - rank l) p l r).
Qed.
End Ordered.

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
Print Assumptions unordered_deadlocks.
